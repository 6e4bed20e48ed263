/* See run.h. */
#include "nboxd/op/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "nboxd/full/release.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/body.h"
#include "nboxd/op/live.h"
#include "op/p2p.h"
#include "op/rule.h"

/* --- towards real ranks ---------------------------------------------------------- */

/* Whether a ring's message is the sender's own block: the first of each loop. */
static bool is_own(const struct sched *s, uint64_t index)
{
	uint64_t positions = s->n_ranks - 1;

	if (s->kind == COLL_ALLREDUCE)
		positions *= 2;
	return s->algo == SCHED_RING && positions && index % positions == 0;
}

/* What is passed on was received, or summed up, a moment ago, and lies in cache. */
static const void *payload_body(struct run *run, uint32_t in, uint64_t index, uint64_t bytes)
{
	struct live *live = live_of(run->comm->ops);
	const struct border *b = run->border;
	const struct border_dep *dep = &b->dep[b->dep_start[in]];
	const struct sched *s = run->call ? &run->call->sched : NULL;
	uint64_t footprint = s ? s->bytes : b->in[in].bytes;
	bool own = s && is_own(s, index);

	if (s)
		payload_need(&live->payload, footprint);
	if (s && !own && b->dep_start[in] < b->dep_start[in + 1] && index >= dep->shift)
		return body_result(run->call, &live->payload, dep->out, index - dep->shift, bytes);
	if (own && s->kind == COLL_ALLGATHER && live->ops.config->payload_work == WORK_REDUCE)
		payload_copy(&live->payload, index, bytes, footprint);
	return payload_source(&live->payload, index, bytes, footprint);
}

static void sink_send(void *owner, struct engine_op *engine_op, uint32_t in, uint64_t index,
		      uint64_t due_ns)
{
	struct run *run = engine_op_tag(engine_op);
	const struct border_conn *conn = &run->border->in[in];
	struct ops *ops = run->comm->ops;
	const void *body = NULL;
	uint16_t lane = conn->lane;
	uint64_t bytes = 0;
	struct post *post;
	struct wire_hdr h;

	(void)owner;
	(void)due_ns;
	if (run->call) {
		post = op_post(run->posts[0]->op, comm_member(run->comm, conn->dst));
	} else {
		post = run->to[in].post;
		lane = post->op->p2p->calls[run->to[in].call].lane;
	}
	if (ops->config->exchange == EXCHANGE_PAYLOAD) {
		bytes = border_message_bytes(run->border, run->call ? &run->call->sched : NULL,
					     conn, index);
		body = payload_body(run, in, index, bytes);
	}
	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.comm = run->comm->number;
	h.seq = post->op->key.seq;
	h.rank = conn->dst;
	h.peer = conn->src;
	h.lane = lane;
	h.index = index;
	post->n_messages++;
	live_of(ops)->n_messages_out++;
	if (post->member->worker)
		worker_send_message(post->member->worker, &h, bytes ? body : NULL);
}

static void sink_end(void *owner, struct engine_op *engine_op, uint64_t end_ns)
{
	struct run *run = engine_op_tag(engine_op);

	(void)owner;
	(void)end_ns;
	run_end(run);
}

const struct engine_sink op_sink = {.send = sink_send, .end = sink_end};

void run_on_released(struct post *post)
{
	struct wire_release m = {post->start_ns, post->end_ns, post->number, 0};
	struct op *op = post->op;
	struct wire_hdr h;

	if (op->p2p && op->p2p->pair.is_onesided &&
	    op->comm->ops->config->exchange != EXCHANGE_NONE)
		m.n_messages = p2p_n_awaited(op);
	post->told_ns = post->earliest_ns = post->end_ns;
	if (post->end_ns > op->moved_ns || post == op->posts)
		op->moved_ns = post->end_ns;
	op->warn_ns = op->moved_ns; /* then op_tick() knows better */
	wire_hdr_init(&h, WIRE_RELEASE, sizeof(m));
	h.comm = op->comm->number;
	h.seq = op->key.seq;
	h.rank = post->member->rank;
	if (post->member->worker)
		worker_send(post->member->worker, &h, &m);
	full_on_released(post);
}

/* A gate that is open stays so. */
static void move(struct post *post)
{
	struct wire_move m = {post->end_ns};
	struct wire_hdr h;

	if (post->told_ns == post->end_ns || !post->is_released || post->is_done ||
	    !post->member->worker)
		return;
	post->told_ns = post->end_ns;
	post->earliest_ns = post->end_ns < post->earliest_ns ? post->end_ns : post->earliest_ns;
	wire_hdr_init(&h, WIRE_MOVE, sizeof(m));
	h.comm = post->op->comm->number;
	h.seq = post->op->key.seq;
	h.rank = post->member->rank;
	worker_send(post->member->worker, &h, &m);
	full_on_moved(post);
}

/* --- warnings -------------------------------------------------------------------- */

static void warn_below_bound(const struct run *run)
{
	const struct post *first = run->posts[0];
	struct ops *ops = run->comm->ops;
	char name[OP_NAME_MAX], kind[64] = "", end[32], bound[32];

	if (run->timing.end_ns >= run->timing.bound_ns || run->timing.is_ahead ||
	    ops->is_below_bound_told || strcmp(ops->config->model, "none") == 0)
		return;
	ops->is_below_bound_told = true;
	if (run->call)
		snprintf(kind, sizeof(kind), " (%s)", coll_kind_name(run->call->key.kind));
	warn_run("%s%s: the model says %s, but the network alone needs %s",
		 op_name(first->op->key.seq, first->member->rank, run->comm->number, name,
			 sizeof(name)),
		 kind, units_print_time(run->timing.end_ns, end, sizeof(end)),
		 units_print_time(run->timing.bound_ns, bound, sizeof(bound)));
}

/* Deciding took so long that the op was over before: meanwhile nothing was decided, nor moved, for
 * any op. */
static void warn_slow(const struct run *run)
{
	uint64_t since_ns = live_of(run->comm->ops)->since_ns;
	const struct post *first = run->posts[0];
	struct ops *ops = run->comm->ops;
	uint64_t now = clock_now_ns();
	char name[OP_NAME_MAX], took[32], late[32];

	if (!run->call || live_of(ops)->is_slow_told || now <= run->end_ns + NS_PER_MS ||
	    now - since_ns < NS_PER_MS)
		return;
	live_of(ops)->is_slow_told = true;
	warn_run(
		"%s (%s of %u ranks): finding its end took nboxd %s, and the op was over %s before: "
		"gates open late; %s",
		op_name(first->op->key.seq, first->member->rank, run->comm->number, name,
			sizeof(name)),
		coll_kind_name(run->call->key.kind), run->comm->n_ranks,
		units_print_time((double)(now - since_ns), took, sizeof(took)),
		units_print_time((double)(now - run->end_ns), late, sizeof(late)),
		run->timing.how == SOLVE_SIM || ops->config->topology.reduce_bytes_per_ns > 0
			? "each of its messages is simulated, as what-ifs on messages or on one rank's link "
			  "and reduce-bandwidth may ask for: choose fewer ranks, larger chunks or a what-if on "
			  "whole ops"
			: "nothing was simulated: this machine was busy, or the model's code is slow");
}

/* --- the start ------------------------------------------------------------------- */

/* Gives the engine what came from @op's members before the run: messages of a connection come in
 * order, so their count says it all. */
static int replay(struct run *run, const struct op *op, struct err *err)
{
	for (uint32_t i = 0; i < op->n_flows; i++) {
		const struct flow *flow = &op->flows[i];

		for (uint64_t k = 0; flow->turn == run->turn && k < flow->n_arrived; k++) {
			int r = engine_arrived(live_of(run->comm->ops)->engine, run->engine_op,
					       flow->out, k, err);

			if (r)
				return r < 0 ? r : -EPROTO;
		}
	}
	return 0;
}

/* Gates that are not open yet open later. */
void run_on_moved(struct run *run)
{
	uint64_t end_ns = run->end_ns;

	rule_move_posts(run);
	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i])
			move(run->posts[i]);
	if (run->engine_op && run->end_ns != end_ns)
		engine_stretch(live_of(run->comm->ops)->engine, run->engine_op, clock_now_ns(),
			       run->end_ns);
}

/* From when on messages go. What was put before a rank waits for it may be there already. */
static uint64_t begin_ns(const struct run *run, uint64_t alone_ns)
{
	bool is_onesided = !run->call && run->posts[0]->op->p2p->pair.is_onesided;
	uint64_t takes_ns = (uint64_t)run->timing.end_ns;

	return is_onesided && alone_ns < run->start_ns + takes_ns ? alone_ns - takes_ns
								  : run->start_ns;
}

int run_play(struct run *run, struct err *err)
{
	struct engine *engine = live_of(run->comm->ops)->engine;
	uint64_t alone_ns = run->end_ns - (uint64_t)run->waits_ns;
	int r = engine_start(engine, run->border, &run->timing, begin_ns(run, alone_ns), alone_ns,
			     run, &run->engine_op);

	if (r < 0)
		return err_set(err, -r, "the engine cannot start the op: %s", strerror(-r));
	if (alone_ns < run->end_ns)
		engine_stretch(engine, run->engine_op, run->start_ns, run->end_ns);
	for (uint32_t i = 0; r == 0 && i < run->n_posts; i++)
		if (i == 0 || run->posts[i]->op != run->posts[i - 1]->op)
			r = replay(run, run->posts[i]->op, err);
	if (r < 0)
		return r;
	warn_below_bound(run);
	warn_slow(run);
	return 0;
}
