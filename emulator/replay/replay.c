/* See replay.h. */
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/open-model.h"
#include "op/decided.h"
#include "op/failing.h"
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
	struct failing failing;
	bool is_ended;   /* by a failure: nothing more happens */
	char ended[256]; /* where a failure ends the job, or keeps it waiting */
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

static int on_computed(struct ops *ops, uint32_t world_rank, uint64_t number, double was_ns,
		       double ns, struct err *err)
{
	const struct replay_sink *sink = &stage_of(ops)->in->sink;

	return sink->computed ? sink->computed(sink->ctx, world_rank, number, was_ns, ns, err) : 0;
}

/* --- failures --------------------------------------------------------------------------------- */

/* What the job does after an error it decides itself. */
static void end(struct stage *s, const struct failure *what, const struct comm *c)
{
	const uint32_t *rank = failing_rank(what, c);

	if (what->how != FAILURE_ERROR || s->is_ended)
		return;
	s->is_ended = true;
	if (what->n_ranks)
		snprintf(s->ended, sizeof(s->ended),
			 "what-if %.128s: world rank %u is gone: the job ends here", what->text,
			 rank ? *rank : what->ranks[0]);
	else
		snprintf(s->ended, sizeof(s->ended),
			 "what-if %.128s: the op failed: the job ends here", what->text);
}

static bool on_opened(void *ctx, struct op *op, uint32_t kind)
{
	struct stage *s = ctx;

	for (size_t i = 0; i < s->failing.n; i++)
		if (failing_on_op(&s->failing.list[i], op->comm, kind))
			end(s, s->failing.list[i].what, op->comm);
	return !s->is_ended;
}

static void fail_at(struct stage *s, const struct post *post)
{
	double at_ns = s->failing.n ? timeline_arrival(post->node, post->member->world_rank) : 0;

	for (size_t i = 0; i < s->failing.n; i++)
		if (failing_on_arrival(&s->failing.list[i], at_ns, post->step))
			end(s, s->failing.list[i].what, post->op->comm);
}

static bool is_lost(struct op *op)
{
	struct stage *s = stage_of(op->comm->ops);
	char name[OP_NAME_MAX], why[80];
	const struct failure *what;
	uint32_t rank;

	if (!op->p2p && op->n_arrived < op->n_posts)
		return false;
	what = failing_hold(&s->failing, op, &rank);
	if (what && !s->ended[0])
		snprintf(s->ended, sizeof(s->ended),
			 "what-if %.96s: %s never completes: %s: the job waits from here on",
			 what->text,
			 op_name(op->key.seq, op_first_arrived(op)->member->rank, op->comm->number,
				 name, sizeof(name)),
			 failing_why(what, rank, why, sizeof(why)));
	return op->held;
}

static void warn_of_unmet(const struct stage *s)
{
	char sentence[512];

	for (size_t i = 0; i < s->failing.n; i++) {
		const struct failing_state *state = &s->failing.list[i];
		const char *why =
			state->has_struck ? failing_unmet(state) : "the record ends before";

		snprintf(sentence, sizeof(sentence), "what-if %.400s: %s", state->what->text,
			 why ? why : "");
		if (why)
			s->in->sink.warn(s->in->sink.ctx, sentence);
	}
}

static const struct ops_sink ops_sink = {
	.is_lost = is_lost,
	.released = on_released,
	.moved = rule_move_posts,
	.debt = on_debt,
	.computed = on_computed,
	.warn = on_warn,
};

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

	fail_at(s, s->player.posts[row]);
	if (!s->nodes)
		return;
	s->nodes[row] = timeline_node_hold(s->player.posts[row]->node);
	tell_lags(s, row, s->nodes[row], false);
}

static void on_over(void *ctx, uint32_t row)
{
	struct stage *s = ctx;
	const struct rows_row *of = &s->in->graph->rows[row];

	if (!s->nodes)
		return;
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

static const struct player_sink player_sink = {.opened = on_opened,
					       .taken = on_taken,
					       .over = on_over};

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
				    .sink = &player_sink,
				    .ctx = s};
	s->comms = calloc(rec->n_comms + 1, sizeof(*s->comms));
	s->lags = in->sink.lags ? malloc(c->world * sizeof(*s->lags)) : NULL;
	s->nodes = in->sink.lags ? calloc((size_t)in->graph->n + 1, sizeof(struct timeline_node *))
				 : NULL;
	if (failing_init(&s->failing, c) < 0 || !s->comms ||
	    (in->sink.lags && (!s->lags || !s->nodes)))
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
	failing_deinit(&s->failing);
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
	while (r == 0 && !s.is_ended && player_next(&s.player) < INFINITY)
		r = player_advance(&s.player, player_next(&s.player), err);
	if (r == 0 && s.error)
		r = err_set(err, -s.error, "no memory for the times of all ranks");
	if (r < 0)
		return r;
	*told = (struct replay_told){.counts = s.part.told, .n_lost = drop_lost(&s)};
	memcpy(told->ended, s.ended, sizeof(told->ended));
	if (in->sink.warn) {
		ops_tell_unmet(&s.ops, in->sink.warn, in->sink.ctx);
		warn_of_unmet(&s);
	}
	if (in->sink.warn && delay_warning(s.ops.delay))
		in->sink.warn(in->sink.ctx, delay_warning(s.ops.delay));
	decided_print(&s.ops, told->decided_by, sizeof(told->decided_by));
	asked = s.ops.asked;
	asked.kind = -1;
	open_model_network(in->config, s.ops.delay, &asked, told->network, sizeof(told->network));
	*ret = s.part.out;
	s.part.out = (struct record){0};
	return 0;
}
