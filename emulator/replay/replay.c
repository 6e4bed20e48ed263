/* See replay.h. */
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/open-model.h"
#include "op/open.h"
#include "op/rule.h"
#include "op/table.h"
#include "op/unmet.h"
#include "replay/part.h"
#include "replay/player.h"

/* What is played, and on what. */
struct stage {
	const struct replay *in;
	struct part part;
	struct player player;
	struct ops ops;
	struct cluster cluster;
	struct comm *comms; /* owned; as in the record */
	uint64_t n_comms;
	double *lags;                 /* owned, as the nodes; NULL: nobody wants them */
	struct timeline_node **nodes; /* of ops, by row; held */
	int error;                    /* of who wants them */
};

static struct stage *stage_of(struct ops *ops)
{
	return container_of(ops, struct stage, ops);
}

/* --- what ops say ----------------------------------------------------------------------------- */

static void on_released(struct post *post)
{
	player_released(&stage_of(post->op->comm->ops)->player, post);
}

static void on_debt(struct ops *ops, double ns)
{
	struct record_end *end = &stage_of(ops)->part.out.end;

	end->n_debts++;
	end->debt_ns += (uint64_t)ns;
}

static void on_warn(struct ops *ops, const char *sentence)
{
	const struct replay_sink *sink = &stage_of(ops)->in->sink;

	if (sink->warn)
		sink->warn(sink->ctx, sentence);
}

static const struct ops_sink ops_sink = {
	.released = on_released,
	.moved = rule_move_posts,
	.debt = on_debt,
	.warn = on_warn,
};

static const struct player_sink player_sink = {.failed = NULL};

/* --- how far ranks are behind ----------------------------------------------------------------- */

static void tell_lags(struct stage *s, uint32_t row, const struct timeline_node *node, bool is_over)
{
	const struct rows_row *of = &s->in->graph->rows[row];
	struct replay_lags l = {.row = row,
				.real_rank = of->is_op ? s->part.out.ops[of->index].world_rank
						       : s->part.out.points[of->index].world_rank,
				.is_over = is_over};

	l.ranks = timeline_ranks(node, &l.n);
	l.ns = timeline_lags(node, is_over, s->lags) ? s->lags : NULL;
	if (s->error == 0)
		s->error = s->in->sink.lags(s->in->sink.ctx, &l);
}

static void on_taken(void *ctx, uint32_t row)
{
	struct stage *s = ctx;

	s->nodes[row] = timeline_node_hold(s->player.posts[row]->node);
	tell_lags(s, row, s->nodes[row], false);
}

static void on_over(void *ctx, uint32_t row)
{
	struct stage *s = ctx;
	const struct rows_row *of = &s->in->graph->rows[row];

	if (of->is_op) {
		tell_lags(s, row, s->nodes[row], true);
		timeline_node_release(s->nodes[row]);
		s->nodes[row] = NULL;
	} else {
		tell_lags(s, row,
			  timelines_latest(s->ops.timelines,
					   s->part.out.points[of->index].world_rank),
			  false);
	}
}

static const struct player_sink lags_sink = {.taken = on_taken, .over = on_over};

/* --- the world -------------------------------------------------------------------------------- */

static int open_comm(struct stage *s, uint64_t i, struct err *err)
{
	struct part_comm *of = &s->part.comms[i];
	struct comm *c = &s->comms[i];
	int r;

	c->number = s->part.rec->comms[i].number;
	c->parent = s->part.rec->comms[i].parent;
	r = comm_init(c, &s->ops, &of->members, of->real, of->n_real);
	s->n_comms = i + (r == 0);
	return r < 0 ? err_set(err, ENOMEM, "out of memory") : player_meet(&s->player, i, c, err);
}

static int open_stage(struct stage *s, struct err *err)
{
	const struct replay *in = s->in;
	const struct config *c = in->config;
	const struct record *rec = in->graph->rec;
	int r = part_make(rec, c, in->sizes, in->declared, &s->part, err);

	s->cluster = (struct cluster){.topology = &c->topology,
				      .real = c->real,
				      .n_real = c->n_real,
				      .layouts = c->layouts,
				      .n_layouts = c->n_layouts};
	s->ops = (struct ops){.sink = &ops_sink,
			      .config = c,
			      .cluster = &s->cluster,
			      .ideal = in->ideal};
	s->player = (struct player){.graph = in->graph,
				    .ops = &s->ops,
				    .out = &s->part.out,
				    .terms = in->terms,
				    .sink = in->sink.lags ? &lags_sink : &player_sink,
				    .ctx = s};
	s->comms = calloc(rec->n_comms + 1, sizeof(*s->comms));
	s->lags = in->sink.lags ? malloc(c->world * sizeof(*s->lags)) : NULL;
	s->nodes = in->sink.lags ? calloc((size_t)in->graph->n + 1, sizeof(struct timeline_node *))
				 : NULL;
	if (!s->comms || (in->sink.lags && (!s->lags || !s->nodes)))
		return err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = player_open(&s->player, err);
	if (r == 0)
		r = open_model(c, in->dirs, &s->ops.delay, err);
	if (r == 0 && rec->job)
		r = delay_set_job(s->ops.delay, &(struct delay_job){rec->job, rec->job_bytes}, err);
	if (r == 0) {
		delay_set_scale(s->ops.delay, in->scale);
		r = ops_open(&s->ops, err);
	}
	for (uint64_t i = 0; i < rec->n_comms && r == 0; i++)
		r = open_comm(s, i, err);
	return r;
}

static void stage_deinit(struct stage *s)
{
	for (uint32_t i = 0; s->nodes && i < s->in->graph->n; i++)
		timeline_node_release(s->nodes[i]);
	for (uint64_t i = 0; i < s->n_comms; i++) {
		comm_ops_free(&s->comms[i]);
		comm_deinit(&s->comms[i]);
	}
	ops_close(&s->ops);
	free(s->comms);
	free(s->lags);
	free(s->nodes);
	player_close(&s->player);
	part_deinit(&s->part);
}

/* --- its end ---------------------------------------------------------------------------------- */

/* Rows that were never over go. Return: how many. */
static uint64_t drop_lost(struct stage *s)
{
	const struct rows_graph *g = s->in->graph;
	struct record *out = &s->part.out;
	uint64_t n_lost = 0, n_ops = 0, n_points = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		if (s->player.is_over[i])
			continue;
		n_lost++;
		if (g->rows[i].is_op)
			out->ops[g->rows[i].index].of = NULL;
		else
			out->points[g->rows[i].index].name = 0;
	}
	for (uint64_t i = 0; i < out->n_ops; i++)
		if (out->ops[i].of)
			out->ops[n_ops++] = out->ops[i];
	for (uint64_t i = 0; i < out->n_points; i++)
		if (out->points[i].name)
			out->points[n_points++] = out->points[i];
	out->n_ops = n_ops;
	out->n_points = n_points;
	return n_lost;
}

int replay_play(const struct replay *in, struct record *ret, struct replay_told *told,
		struct err *err)
{
	CLEANUP(stage_deinit) struct stage s = {.in = in};
	struct asked asked;
	int r = open_stage(&s, err);

	if (r == 0)
		r = player_start(&s.player, 0, err);
	if (r == 0)
		r = player_advance(&s.player, INFINITY, err);
	if (r == 0 && s.error)
		r = err_set(err, -s.error, "no memory for the times of all ranks");
	if (r < 0)
		return r;
	*told = (struct replay_told){.counts = s.part.told, .n_lost = drop_lost(&s)};
	if (in->sink.warn)
		ops_tell_unmet(&s.ops, in->sink.warn, in->sink.ctx);
	if (in->sink.warn && delay_warning(s.ops.delay))
		in->sink.warn(in->sink.ctx, delay_warning(s.ops.delay));
	if (delay_decided_by(s.ops.delay))
		snprintf(told->decided_by, sizeof(told->decided_by), "%s",
			 delay_decided_by(s.ops.delay));
	asked = s.ops.asked;
	asked.kind = -1;
	open_model_network(in->config, s.ops.delay, &asked, told->network, sizeof(told->network));
	*ret = s.part.out;
	s.part.out = (struct record){0};
	return 0;
}
