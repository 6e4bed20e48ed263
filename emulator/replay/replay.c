/* See replay.h. A row is taken when all rows that it follows are over. Two kinds of events wait for
 * their time: the arrival of a post, which is told to its op, and the end of a post, which lets the
 * rows that follow go on. An end that moves waits on. */
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/open-model.h"
#include "engine/sim-heap.h"
#include "op/arrive.h"
#include "op/open.h"
#include "op/row.h"
#include "op/rule.h"
#include "op/start.h"
#include "op/unmet.h"
#include "replay/world.h"

/* In the order in which they come at equal times. */
enum event { EVENT_TAKE, EVENT_ARRIVE, EVENT_END };

struct player {
	const struct replay *in;
	const struct record *rec; /* borrowed */
	struct ops ops;
	struct cluster cluster;
	struct world from, to; /* of the record; the new one */
	struct comm *comms;    /* owned; as in the record */
	uint64_t n_comms;
	uint32_t *n_waits;   /* owned; by row */
	struct post **posts; /* owned list, borrowed; by row; NULL: a point, not there, or over */
	bool *is_over;       /* owned; by row */
	struct counts_told counts_told;
	struct record out; /* ops have the counts and calls of the new world from the start */
	struct sim_heap events;
	double now;
	struct err *err;
	int error; /* of a sink */
};

/* In the new world, of a rank that is real in the record; UINT32_MAX: it is not there. */
static uint32_t rank_of(const struct player *p, uint32_t world_rank_was)
{
	return (uint32_t)world_rank(&p->from, &p->to, world_rank_was);
}

static struct player *player_of(struct ops *ops)
{
	return container_of(ops, struct player, ops);
}

static int push(struct player *p, enum event what, uint32_t row, double at)
{
	if (sim_heap_push(&p->events, fmax(at, p->now), (uint64_t)what << 32 | row))
		return err_set(p->err, ENOMEM, "no memory for events");
	return 0;
}

/* --- what ops say ----------------------------------------------------------------------------- */

/* A post's row is in its arrive.name. */
static uint32_t row_of(const struct post *post)
{
	return (uint32_t)(post->arrive.name - 1);
}

static void on_released(struct post *post)
{
	struct player *p = player_of(post->op->comm->ops);
	int r = push(p, EVENT_END, row_of(post), timeline_real_end(post->node, false));

	p->error = p->error ? p->error : r;
}

static void on_debt(struct ops *ops, double ns)
{
	struct record_end *end = &player_of(ops)->out.end;

	end->n_debts++;
	end->debt_ns += (uint64_t)ns;
}

static void on_warn(struct ops *ops, const char *sentence)
{
	const struct replay_sink *sink = &player_of(ops)->in->sink;

	if (sink->warn)
		sink->warn(sink->ctx, sentence);
}

static const struct ops_sink sink = {
	.released = on_released,
	.moved = rule_move_posts,
	.debt = on_debt,
	.warn = on_warn,
};

/* --- the world -------------------------------------------------------------------------------- */

/* What the new record says of it. */
static int keep_comm(struct player *p, const struct comm *c, struct record_comm *ret)
{
	const struct membership *m = &c->members.map;
	struct record_member *real = record_keep(&p->out, c->n_real * sizeof(*real));
	uint32_t *table = m->table ? record_keep(&p->out, m->n_ranks * sizeof(*table)) : NULL;

	if (!real || (m->table && !table))
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_real; i++)
		real[i] = (struct record_member){c->real[i].rank, c->real[i].world_rank};
	if (table)
		memcpy(table, m->table, m->n_ranks * sizeof(*table));
	ret->n_ranks = m->n_ranks;
	ret->base = m->base;
	ret->stride = m->stride;
	ret->n_members = table ? m->n_ranks : 0;
	ret->members = table;
	ret->real = real;
	return 0;
}

static int compare_members(const void *a, const void *b)
{
	uint32_t x = ((const struct wire_member *)a)->rank,
		 y = ((const struct wire_member *)b)->rank;

	return (x > y) - (x < y);
}

static int make_comm(struct player *p, uint64_t i)
{
	const struct record_comm *from = &p->rec->comms[i];
	CLEANUP(freep) struct wire_member *real = calloc((size_t)from->n_real + 1, sizeof(*real));
	CLEANUP(members_deinit) struct members members = {0};
	struct comm *c = &p->comms[i];
	int r;

	if (!real)
		return err_set(p->err, ENOMEM, "out of memory");
	r = world_members(from, &p->from, &p->to, &members, p->err);
	if (r < 0)
		return r;
	for (uint32_t k = 0; k < from->n_real; k++) {
		uint32_t rank = rank_of(p, from->real[k].world_rank);

		real[k] = (struct wire_member){(uint32_t)membership_rank(&members.map, rank), rank};
	}
	qsort(real, from->n_real, sizeof(*real), compare_members);
	c->number = from->number;
	c->parent = from->parent;
	r = comm_init(c, &p->ops, &members, real, from->n_real);
	p->n_comms = i + (r == 0);
	if (r == 0)
		r = keep_comm(p, c, &p->out.comms[i]);
	return r < 0 ? err_set(p->err, ENOMEM, "out of memory") : 0;
}

/* memcpy() of nothing may not be from NULL. */
static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static int move_rank(struct player *p, uint32_t *rank)
{
	uint32_t was = *rank;

	*rank = rank_of(p, was);
	return *rank == UINT32_MAX ? err_set(p->err, EINVAL,
					     "what rank %u of the run computes nobody does in a "
					     "world of %u ranks",
					     was, p->to.size)
				   : 0;
}

static int copy_record(struct player *p)
{
	const struct record *rec = p->rec;
	const struct config *c = p->in->config;
	struct record *out = &p->out;
	int r = 0;

	out->header = rec->header;
	out->header.world_size = c->world;
	out->header.n_nodes = c->topology.n_nodes;
	out->header.gpus_per_node = c->topology.gpus_per_node;
	out->header.seed = c->seed;
	memset(out->header.layout, 0, sizeof(out->header.layout));
	for (size_t i = 0, used = 0; i < c->n_layouts && used < sizeof(out->header.layout); i++)
		used += (size_t)snprintf(out->header.layout + used,
					 sizeof(out->header.layout) - used, "%s%s", i ? ";" : "",
					 c->values[CONFIG_LAYOUT].items[i].text);
	memset(out->header.model, 0, sizeof(out->header.model));
	config_model(c, out->header.model, sizeof(out->header.model));
	out->end = (struct record_end){.n_lost = rec->end.n_lost};
	out->comms = calloc(rec->n_comms + 1, sizeof(*out->comms));
	out->ops = calloc(rec->n_ops + 1, sizeof(*out->ops));
	out->points = calloc(rec->n_points + 1, sizeof(*out->points));
	if (!out->comms || !out->ops || !out->points)
		return err_set(p->err, ENOMEM, "out of memory");
	copy(out->comms, rec->comms, rec->n_comms * sizeof(*out->comms));
	copy(out->ops, rec->ops, rec->n_ops * sizeof(*out->ops));
	copy(out->points, rec->points, rec->n_points * sizeof(*out->points));
	out->n_comms = rec->n_comms;
	out->n_ops = rec->n_ops;
	out->n_points = rec->n_points;
	out->is_truncated = rec->is_truncated;
	out->job = rec->job;
	out->job_bytes = rec->job_bytes;
	for (uint64_t i = 0; i < out->n_ops && r == 0; i++) {
		out->ops[i].of = &out->comms[rec->ops[i].of - rec->comms];
		r = move_rank(p, &out->ops[i].world_rank);
	}
	for (uint64_t i = 0; i < out->n_points && r == 0; i++)
		r = move_rank(p, &out->points[i].world_rank);
	return r;
}

static int find_counts(struct player *p)
{
	CLEANUP(freep) struct membership *maps = calloc(p->n_comms + 1, sizeof(*maps));

	if (!maps)
		return err_set(p->err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < p->n_comms; i++)
		maps[i] = p->comms[i].members.map;
	return counts_change(&(struct counts_ask){.rec = p->rec,
						  .from = &p->from,
						  .to = &p->to,
						  .maps = maps,
						  .sizes = p->in->sizes,
						  .declared = p->in->declared},
			     &p->out, &p->counts_told, p->err);
}

static int open_world(struct player *p)
{
	const struct config *c = p->in->config;
	uint32_t n = p->in->graph->n;
	int r;

	p->cluster = (struct cluster){.topology = &c->topology,
				      .real = c->real,
				      .n_real = c->n_real,
				      .layouts = c->layouts,
				      .n_layouts = c->n_layouts};
	p->ops = (struct ops){.sink = &sink,
			      .config = c,
			      .cluster = &p->cluster,
			      .ideal = p->in->ideal};
	p->comms = calloc(p->rec->n_comms + 1, sizeof(*p->comms));
	p->n_waits = malloc(((size_t)n + 1) * sizeof(*p->n_waits));
	p->posts = calloc((size_t)n + 1, sizeof(struct post *));
	p->is_over = calloc((size_t)n + 1, sizeof(*p->is_over));
	if (!p->comms || !p->n_waits || !p->posts || !p->is_over)
		return err_set(p->err, ENOMEM, "out of memory");
	if (p->rec->header.gpus_per_node != c->topology.gpus_per_node)
		return err_set(
			p->err, EINVAL,
			"the run was recorded on nodes of %u GPUs, not %u: which rank computes "
			"what would be another",
			p->rec->header.gpus_per_node, c->topology.gpus_per_node);
	world_of_config(c, &p->to);
	r = world_of_record(&p->rec->header, &p->from, p->err);
	if (r == 0)
		r = world_check(&p->from, &p->to, p->err);
	if (r == 0)
		r = open_model(c, p->in->dirs, &p->ops.delay, p->err);
	if (r == 0 && p->rec->job)
		r = delay_set_job(p->ops.delay, &(struct delay_job){p->rec->job, p->rec->job_bytes},
				  p->err);
	if (r == 0) {
		delay_set_scale(p->ops.delay, p->in->scale);
		r = ops_open(&p->ops, p->err);
	}
	if (r == 0)
		r = copy_record(p);
	for (uint64_t i = 0; i < p->rec->n_comms && r == 0; i++)
		r = make_comm(p, i);
	return r == 0 ? find_counts(p) : r;
}

static void player_deinit(struct player *p)
{
	for (uint64_t i = 0; i < p->n_comms; i++) {
		comm_ops_free(&p->comms[i]);
		comm_deinit(&p->comms[i]);
	}
	ops_close(&p->ops);
	free(p->comms);
	free(p->n_waits);
	free(p->posts);
	free(p->is_over);
	sim_heap_deinit(&p->events);
	record_deinit(&p->out);
}

/* --- rows ------------------------------------------------------------------------------------- */

static int let_go(struct player *p, uint32_t row, bool is_early)
{
	const struct rows_row *from = &p->in->graph->rows[row];
	int r = 0;

	for (uint32_t i = 0; i < from->n_followers && r == 0; i++) {
		const struct rows_follower *f = &p->in->graph->followers[from->first_follower + i];

		if (f->is_early == is_early && --p->n_waits[f->row] == 0)
			r = push(p, EVENT_TAKE, f->row, p->now);
	}
	return r;
}

static struct timeline_dep dep_of(const struct rows_dep *dep)
{
	return (struct timeline_dep){.name = dep->row == ROWS_NONE ? 0 : (uint64_t)dep->row + 1,
				     .is_same_stream = dep->is_same_stream,
				     .open_ns = dep->open_ns};
}

static size_t take_deps(const struct player *p, const struct rows_row *row,
			struct timeline_dep *ret)
{
	size_t n = 0;

	for (; n < row->n_deps && n < WIRE_DEPS_MAX; n++)
		ret[n] = dep_of(&p->in->graph->deps[row->first_dep + n]);
	return n;
}

static uint64_t host_of(const struct rows_row *row)
{
	return row->host == ROWS_NONE ? 0 : (uint64_t)row->host + 1;
}

static int take_point(struct player *p, uint32_t i)
{
	const struct rows_row *row = &p->in->graph->rows[i];
	const struct record_point *from = &p->rec->points[row->index];
	struct record_point *to = &p->out.points[row->index];
	struct timeline_dep deps[WIRE_DEPS_MAX], latest = dep_of(&row->latest);
	struct timeline_times t;
	int r = ops_point(&p->ops, to->world_rank,
			  &(struct timeline_point){
				  .name = (uint64_t)i + 1,
				  .time_ns = from->time_ns,
				  .call_ns = from->call_ns,
				  .work_ns = from->work_ns,
				  .host = host_of(row),
				  .deps = deps,
				  .n_deps = take_deps(p, row, deps),
				  .latest = &latest,
				  .number = row->number,
				  .is_host = from->kind == RECORD_POINT_HOST,
			  },
			  &t, p->err);

	if (r < 0)
		return r;
	to->virtual_ns = t.time_ns;
	to->plain_ns = t.plain_ns;
	to->exposed_ns = t.exposed_ns;
	to->is_host_bound = t.is_host_bound;
	if (p->in->terms)
		p->in->terms[i] = t.terms;
	p->is_over[i] = true;
	r = let_go(p, i, true);
	return r < 0 ? r : let_go(p, i, false);
}

/* The op that @to is at, with its post. Return: 0; negative errno with the sentence. */
static int find_post(struct player *p, const struct record_op *to, struct wire_arrive *a,
		     struct post **ret)
{
	struct comm *c = &p->comms[to->of - p->out.comms];
	bool is_p2p = to->kind == COLL_SENDRECV;
	uint64_t seq = is_p2p ? to->seq | WIRE_SEQ_P2P : to->seq;
	CLEANUP(freep) struct wire_p2p *calls = NULL;
	struct comm_member *m = NULL;
	struct op *op;
	int r = 0;

	for (uint32_t i = 0; i < c->n_real && !m; i++)
		m = c->real[i].world_rank == to->world_rank ? &c->real[i] : NULL;
	if (!m || !comm_ops_get(c))
		return m ? err_set(p->err, ENOMEM, "out of memory")
			 : err_set(p->err, EINVAL,
				   "the record has an op of rank %u in communicator %u, which it is "
				   "not in",
				   to->world_rank, c->number);
	op = op_find(c, seq, (size_t)(m - c->real));
	if (!op) {
		calls = is_p2p ? calloc((size_t)to->n_calls + 1, sizeof(*calls)) : NULL;
		op = op_new(c, seq, (size_t)(m - c->real));
		if (!op || (is_p2p && !calls))
			return err_set(p->err, ENOMEM, "out of memory");
		for (uint32_t i = 0; is_p2p && i < to->n_calls; i++)
			calls[i] = (struct wire_p2p){.peer = to->calls[i].peer,
						     .is_send = to->calls[i].is_send,
						     .bytes = to->calls[i].bytes};
		a->n_p2p = is_p2p ? to->n_calls : 0;
		r = op_define(op, a, (const char *)calls, p->err);
	}
	if (r == 0)
		*ret = op_post(op, m);
	return r;
}

static int take_op(struct player *p, uint32_t i)
{
	const struct rows_row *row = &p->in->graph->rows[i];
	const struct record_op *from = &p->rec->ops[row->index], *to = &p->out.ops[row->index];
	struct timeline_dep deps[WIRE_DEPS_MAX], latest = dep_of(&row->latest);
	struct wire_arrive a = {
		.arrive_ns = from->arrive_ns,
		.count = to->count,
		.kind = from->kind,
		.dtype = from->dtype,
		.redop = from->redop,
		.root = to->root,
		.flags = (from->flags & RECORD_REPLAYED ? WIRE_ARRIVE_REPLAYED : 0) |
			 (from->flags & RECORD_NO_EDGES ? WIRE_ARRIVE_NO_EDGES : 0),
		.name = (uint64_t)i + 1,
		.call_ns = from->call_ns,
		.work_ns = from->work_ns,
		.host = host_of(row),
		.stream = from->stream,
		.n_deps = (uint32_t)take_deps(p, row, deps),
	};
	struct post *post = NULL;
	int r = find_post(p, to, &a, &post);

	if (r == 0)
		r = post_arrive(post, &a, deps, &latest, row->number, p->err);
	if (r < 0)
		return r;
	p->posts[i] = post;
	if (p->in->terms)
		p->in->terms[i] = post->arrival.terms;
	r = push(p, EVENT_ARRIVE, i, timeline_arrival(post->node, to->world_rank));
	return r < 0 ? r : let_go(p, i, true);
}

/* What the record says of the new run, but for what was measured. */
static void fill_row(struct player *p, uint32_t i)
{
	const struct record_op *from = &p->rec->ops[p->in->graph->rows[i].index];
	struct record_op *to = &p->out.ops[p->in->graph->rows[i].index];
	const struct record_op old = *to;

	post_row(p->posts[i], to);
	to->name = from->name;
	to->host = from->host;
	to->start_ns = from->start_ns;
	to->due_ns = from->due_ns;
	to->release_ns = from->release_ns;
	to->local_done_ns = from->local_done_ns;
	to->order = from->order;
	to->done_order = from->done_order;
	to->n_deps = from->n_deps;
	to->n_calls = old.n_calls;
	to->deps = from->deps;
	to->calls = old.calls;
	to->of = old.of;
}

static int end_op(struct player *p, uint32_t i, double at)
{
	struct post *post = p->posts[i];
	double end = timeline_real_end(post->node, false);
	struct op *op = post->op;

	if (end > at + 0.5)
		return push(p, EVENT_END, i, end);
	if (p->is_over[i])
		return 0;
	p->is_over[i] = true;
	fill_row(p, i);
	timeline_opened(post->node, p->rec->ops[p->in->graph->rows[i].index].release_ns);
	post->is_done = true;
	p->posts[i] = NULL;
	op->n_done++;
	op_maybe_free(op);
	return let_go(p, i, false);
}

static int play_event(struct player *p, enum event what, uint32_t row)
{
	int r;

	switch (what) {
	case EVENT_TAKE:
		return p->in->graph->rows[row].is_op ? take_op(p, row) : take_point(p, row);
	case EVENT_ARRIVE:
		r = op_start(p->posts[row], p->err);
		return r < 0 ? r : p->error;
	case EVENT_END:
		return p->posts[row] ? end_op(p, row, p->now) : 0;
	}
	return 0;
}

static int play(struct player *p)
{
	const struct rows_graph *g = p->in->graph;
	int r = 0;

	for (uint32_t i = 0; i < g->n && r == 0; i++) {
		p->n_waits[i] = g->rows[i].n_waits;
		if (p->n_waits[i] == 0)
			r = push(p, EVENT_TAKE, i, 0);
	}
	while (p->events.n && r == 0) {
		struct sim_event e = p->events.items[0];

		p->now = sim_event_ns(&e);
		sim_heap_drop(&p->events);
		r = play_event(p, (enum event)(e.tie >> 32), (uint32_t)e.tie);
	}
	return r;
}

/* Rows that were never over go. Return: how many. */
static uint64_t drop_lost(struct player *p)
{
	const struct rows_graph *g = p->in->graph;
	struct record *out = &p->out;
	uint64_t n_lost = 0, n_ops = 0, n_points = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		if (p->is_over[i])
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
	CLEANUP(player_deinit) struct player p = {.in = in, .rec = in->graph->rec, .err = err};
	struct asked asked;
	int r = open_world(&p);

	if (r == 0)
		r = play(&p);
	if (r < 0)
		return r;
	*told = (struct replay_told){.counts = p.counts_told, .n_lost = drop_lost(&p)};
	if (in->sink.warn)
		ops_tell_unmet(&p.ops, in->sink.warn, in->sink.ctx);
	if (in->sink.warn && delay_warning(p.ops.delay))
		in->sink.warn(in->sink.ctx, delay_warning(p.ops.delay));
	if (delay_decided_by(p.ops.delay))
		snprintf(told->decided_by, sizeof(told->decided_by), "%s",
			 delay_decided_by(p.ops.delay));
	asked = p.ops.asked;
	asked.kind = -1;
	open_model_network(in->config, p.ops.delay, &asked, told->network, sizeof(told->network));
	*ret = p.out;
	p.out = (struct record){0};
	return 0;
}
