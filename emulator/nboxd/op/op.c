/* See op.h. */
#include "nboxd/op/op.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nboxd/comm/failure.h"
#include "nboxd/full/ids.h"
#include "nboxd/full/release.h"
#include "nboxd/loop/warn.h"
#include "nboxd/op/point.h"
#include "nboxd/op/post.h"
#include "nboxd/op/recorded.h"
#include "nboxd/op/run.h"
#include "nboxd/op/wait.h"
#include "op/arrive.h"
#include "op/p2p.h"
#include "op/row.h"
#include "op/start.h"

#define OPS_MAX (1 << 20)     /* open at a time: called by somebody, not done by all */
#define AHEAD_MAX_NS NS_PER_S /* clocks of two hosts may differ by that */
#define WAITING_MAX 512       /* see decided() */

static const char *p2p_word(uint64_t seq)
{
	return seq_is_p2p(seq) ? "point-to-point " : "";
}

/* --- arrivals ---------------------------------------------------------------------- */

/* What an ARRIVE may say by itself; its times are corrected. Return: 0; -1: the worker was
 * refused. */
static int check_arrive(struct worker *w, const struct comm *c, const struct wire_hdr *h,
			struct wire_arrive *a)
{
	uint64_t now = clock_now_ns();

	if (a->kind != COLL_SENDRECV && a->root >= c->n_ranks)
		return worker_refuse(w, EPROTO, "ARRIVE with root %u of %u ranks", a->root,
				     c->n_ranks),
		       -1;
	if (a->arrive_ns > now + AHEAD_MAX_NS)
		return worker_refuse(w, EPROTO,
				     "op %llu of communicator %u arrives %.1f s in the "
				     "future: the clocks do not agree",
				     wire_seq_number(h->seq), h->comm,
				     (double)(a->arrive_ns - now) / 1e9),
		       -1;
	/* An error of the clocks' offset; later than now or before HELLO cannot be. */
	if (a->arrive_ns > now)
		a->arrive_ns = now;
	if (a->arrive_ns < w->hello_ns)
		a->arrive_ns = w->hello_ns;
	a->call_ns = a->call_ns < a->arrive_ns ? a->call_ns : a->arrive_ns;
	a->work_ns = a->work_ns < a->arrive_ns ? a->work_ns : a->arrive_ns;
	return 0;
}

/* No op more can be begun: @c is aborted. What nboxd keeps of an op is less than what the job's own
 * process does, so this is against peers that have gone wrong. */
static bool is_full(struct comm *c)
{
	if (c->ops->n_open < OPS_MAX)
		return false;
	comm_abort(c, NULL, ENOBUFS,
		   "more than %d ops are in the job's streams at a time, or puts that nobody "
		   "has waited for, more than nboxd keeps: end groups sooner",
		   OPS_MAX);
	return true;
}

/* A member that has freed the communicator will not arrive at a collective; no op may wait for
 * it. */
static bool is_left_alone(struct comm *c, uint64_t seq)
{
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (!c->real[i].is_freed || c->open->members[i].next[0] > seq)
			continue;
		comm_abort(
			c, NULL, ECANCELED,
			"op %llu cannot start: rank %u (world rank %u) has freed the communicator",
			(unsigned long long)seq, c->real[i].rank, c->real[i].world_rank);
		return true;
	}
	return false;
}

/* The same for the peers of point-to-point calls. */
static bool is_left_alone_p2p(struct op *op)
{
	const struct pair_call *call = op->p2p ? p2p_waits_for(op, NULL) : NULL;
	char title[OP_NAME_MAX], what[160];

	if (!call)
		return false;
	comm_abort(op->comm, NULL, ECANCELED,
		   "%s of rank %u cannot start: its %s meets nobody: that rank has freed the "
		   "communicator",
		   op_title(op->key.seq, 0, title, sizeof(title)), op->p2p->pair.rank,
		   p2p_call_text(call, what, sizeof(what)));
	return true;
}

/* It waits for who will not call, or a rank that is gone, or off, keeps it from ending. */
static bool is_lost(struct op *op)
{
	bool is_complete = op->p2p || op->n_arrived == op->n_posts;

	return is_left_alone_p2p(op) ||
	       (is_complete && failures_hold(live_of(op->comm->ops)->failures, op));
}

static void mismatch(const struct op *op, const struct comm_member *m, const struct wire_arrive *a)
{
	const struct post *other = op_first_arrived(op);
	char one[160], two[160];

	comm_abort(op->comm, NULL, EINVAL, "op %llu: rank %u calls %s, rank %u calls %s",
		   (unsigned long long)op->key.seq, other->member->rank,
		   op_call_text(&other->arrive, one, sizeof(one)), m->rank,
		   op_call_text(a, two, sizeof(two)));
}

/* The op that @m arrives at, made if it is the first; NULL: the communicator was aborted, or a
 * negative errno is in *ret_r. */
static struct op *op_get(struct comm *c, const struct comm_member *m, uint64_t seq,
			 const struct wire_arrive *a, const char *list, int *ret_r, struct err *err)
{
	size_t i = (size_t)(m - c->real);
	struct op *op = op_find(c, seq, i);

	*ret_r = 0;
	if (op && !op_is_same_call(&op_first_arrived(op)->arrive, a)) {
		mismatch(op, m, a);
		return NULL;
	}
	if (op)
		return op;
	if (is_full(c) || failures_on_op(live_of(c->ops)->failures, c, a->kind))
		return NULL;
	op = op_new(c, seq, i);
	if (op)
		op->moved_ns = clock_now_ns();
	*ret_r = op ? op_define(op, a, list, err) : err_set(err, ENOMEM, "out of memory");
	return *ret_r < 0 ? NULL : op;
}

/* A failure at an arrival ends the communicator. */
static void fail(struct comm *c, const struct wire_hdr *h, uint32_t kind, bool is_start, int r,
		 const struct err *err)
{
	char title[OP_NAME_MAX], who[32] = "";

	if (!is_start || seq_is_p2p(h->seq))
		snprintf(who, sizeof(who), " of rank %u", h->rank);
	comm_abort(c, NULL, -r, "%s%s: %s", op_title(h->seq, kind, title, sizeof(title)), who,
		   err->text);
}

/* --- the order of a group's ops ------------------------------------------------------------- */

static struct member_ops *member_of(const struct post *post)
{
	return &post->op->comm->open->members[post->member - post->op->comm->real];
}

static bool is_undecided(const struct post *post)
{
	return post->arrive.flags & WIRE_ARRIVE_UNDECIDED;
}

/* It waits no more. Return: whether the communicator goes on. */
static bool start(struct post *post)
{
	const struct wire_hdr h = {.seq = post->op->key.seq, .rank = post->member->rank};
	struct member_ops *own = member_of(post);
	struct comm *c = post->op->comm;
	uint32_t kind = post->arrive.kind;
	struct err err;
	int r;

	DL_DELETE(own->waiting, post);
	if (--own->n_waiting == 0)
		own->is_any_order = false;
	r = op_start(post, &err);
	if (r < 0)
		fail(c, &h, kind, true, seq_is_p2p(h.seq) ? r : -EINVAL, &err);
	return !c->is_dead;
}

/* @post's decision is there, or it needs none. Ops of a group begin in the order of their calls,
 * whatever the order in which NCCL tells of them. This cannot hang: NCCL tells of all collectives
 * of a group before it waits for an op of that group, and sends need no word. But where its queue
 * of work is full, with a thousand ops at least, NCCL launches the rest when the first are over,
 * which may have been called last: of very long groups each op begins as it is decided. */
static void decided(struct post *post)
{
	struct member_ops *own = member_of(post);
	bool goes_on = true;

	if (own->is_any_order) {
		start(post);
		return;
	}
	while (goes_on && own->waiting && !is_undecided(own->waiting))
		goes_on = start(own->waiting);
}

/* @post arrives behind what waits. */
static void wait_in_order(struct post *post)
{
	struct member_ops *own = member_of(post);
	struct post *next;

	DL_APPEND(own->waiting, post);
	if (++own->n_waiting > WAITING_MAX && !own->is_any_order) {
		own->is_any_order = true;
		DL_FOREACH_SAFE(own->waiting, post, next)
			if (!is_undecided(post) && !start(post))
				return;
	} else if (!is_undecided(post)) {
		decided(post);
	}
}

/* What the record says of an arrival's deps. @lists: behind struct wire_arrive. NULL: nothing. */
static struct record_dep *keep_deps(const struct live *live, const struct wire_arrive *a,
				    const char *lists)
{
	size_t bytes = live->record ? a->n_deps * sizeof(struct record_dep) : 0;
	struct record_dep *deps = bytes ? malloc(bytes) : NULL;

	if (deps)
		memcpy(deps, lists + a->n_p2p * sizeof(struct wire_p2p), bytes);
	return deps;
}

int op_on_arrive(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm *c = NULL;
	struct comm_member *m = post_find_member(live, w, h, &c);
	bool is_p2p = seq_is_p2p(h->seq);
	struct err err = {"out of memory"};
	struct timeline_dep deps[WIRE_DEPS_MAX];
	struct member_ops *own;
	struct wire_arrive a;
	struct post *post;
	struct op *op;
	int r;

	if (!m)
		return 0;
	memcpy(&a, body, sizeof(a));
	if (check_arrive(w, c, h, &a) < 0)
		return 0;
	if (!comm_ops_get(c)) {
		fail(c, h, a.kind, false, -ENOMEM, &err);
		return 0;
	}
	live->since_ns = clock_now_ns();
	own = &c->open->members[m - c->real];
	if (wire_seq_number(h->seq) != own->next[is_p2p])
		return worker_refuse(
			w, EPROTO,
			"rank %u of communicator %u arrives at %sop %llu instead of %llu", h->rank,
			h->comm, p2p_word(h->seq), wire_seq_number(h->seq),
			(unsigned long long)own->next[is_p2p]);
	if (!is_p2p && is_left_alone(c, h->seq))
		return 0;
	op = op_get(c, m, h->seq, &a, (const char *)body + sizeof(a), &r, &err);
	if (r < 0)
		fail(c, h, a.kind, false, r, &err);
	if (!op)
		return 0;
	own->next[is_p2p]++;
	post = op_post(op, m);
	post->deps = keep_deps(live, &a, (const char *)body + sizeof(a));
	post->order = live->n_points++;
	point_deps((const char *)body + sizeof(a) + a.n_p2p * sizeof(struct wire_p2p), a.n_deps,
		   deps);
	r = post_arrive(post, &a, deps, NULL, 0, &err);
	recorded_on_row(live);
	if (r < 0)
		fail(c, h, a.kind, true, is_p2p ? r : -EINVAL, &err);
	else if (!failures_on_arrival(live->failures, post))
		wait_in_order(post);
	return 0;
}

int op_on_took(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct post *post = post_find(live, w, h);

	if (!post)
		return 0;
	if (!is_undecided(post))
		return worker_refuse(w, EPROTO,
				     "TOOK for %sop %llu of communicator %u, which rank %u has not "
				     "left undecided",
				     p2p_word(h->seq), wire_seq_number(h->seq), h->comm, h->rank);
	live->since_ns = clock_now_ns();
	post->arrive.flags &= ~(uint32_t)WIRE_ARRIVE_UNDECIDED;
	memcpy(&post->arrive.took, body, sizeof(post->arrive.took));
	decided(post);
	return 0;
}

/* --- the end ------------------------------------------------------------------------- */

/* The record and the wire say the same of a dep. */
_Static_assert(sizeof(struct record_dep) == sizeof(struct wire_dep) &&
		       offsetof(struct record_dep, is_same_stream) ==
			       offsetof(struct wire_dep, is_same_stream),
	       "a list of the wire's deps is one of the record's");

static void record_done(const struct post *post, const struct wire_done *done)
{
	const struct op *op = post->op;
	const struct comm *c = op->comm;
	const struct wire_arrive *a = &post->arrive;
	uint32_t n_calls = op->p2p ? op->p2p->pair.n_calls : 0;
	CLEANUP(freep) struct record_call *calls = n_calls ? calloc(n_calls, sizeof(*calls)) : NULL;
	struct record_op row;

	post_row(post, &row);
	row.release_ns = done->release_ns;
	row.local_done_ns = done->local_done_ns;
	row.order = post->order;
	row.done_order = live_of(c->ops)->n_points;
	row.n_deps = post->deps ? a->n_deps : 0;
	row.n_calls = calls ? n_calls : 0;
	row.deps = post->deps;
	row.calls = calls;
	for (uint32_t i = 0; i < row.n_calls; i++)
		calls[i] = (struct record_call){op->p2p->calls[i].peer, op->p2p->calls[i].is_send,
						op->p2p->calls[i].bytes};
	record_op(live_of(c->ops)->record, &row);
	totals_op(&live_of(c->ops)->totals, &row);
}

static void on_debt(struct ops *ops, double ns)
{
	record_debt(live_of(ops)->record, ns);
	totals_debt(&live_of(ops)->totals, ns);
}

int op_on_done(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct post *post = post_find(live, w, h);
	struct wire_done done;
	uint64_t now = clock_now_ns(), latest;
	struct op *op;

	if (!post)
		return 0;
	memcpy(&done, body, sizeof(done));
	if (!post->is_released || post->is_done)
		return worker_refuse(w, EPROTO,
				     "DONE for %sop %llu of communicator %u, which rank %u %s",
				     p2p_word(h->seq), wire_seq_number(h->seq), h->comm, h->rank,
				     post->is_done ? "finished before" : "has not begun");
	op = post->op;
	post->is_done = true;
	/* an error of the clocks' offset, as for points; but no gate opens before it is due */
	latest = now > post->end_ns ? now : post->end_ns;
	done.release_ns = done.release_ns < latest ? done.release_ns : latest;
	timeline_opened(post->node, done.release_ns);
	if (done.release_ns < post->end_ns && done.release_ns >= post->earliest_ns) {
		/* its end moved when the gate was open, or all but */
		on_debt(&live->ops, (double)(post->end_ns - done.release_ns));
		post->end_ns = done.release_ns;
	}
	op->n_done++;
	op->moved_ns = now;
	record_done(post, &done);
	full_on_passed(post);
	if (!w->is_same_clock)
		record_clock_error(live->record, done.clock_error_ns);
	op_maybe_free(op);
	return 0;
}

/* --- upwards and downwards ------------------------------------------------------------------- */

static void end_ops(struct comm *c)
{
	struct run *run;

	DL_FOREACH(c->open ? c->open->runs : NULL, run)
		if (run->engine_op)
			engine_cancel(live_of(c->ops)->engine, run->engine_op);
	recorded_on_end(c);
	full_end_comm(c);
	comm_ops_free(c);
}

const struct comm_sink op_comm_sink = {
	.made = recorded_on_comm,
	.end_ops = end_ops,
	.is_owed = op_is_owed,
	.is_played = recorded_is_played,
};

static void on_warn(struct ops *ops, const char *sentence)
{
	(void)ops;
	warn_run("%s", sentence);
}

static void on_released(struct post *post)
{
	run_on_released(post);
	if (post->member->is_recorded)
		recorded_on_released(post);
}

const struct ops_sink op_live_sink = {
	.is_lost = is_lost,
	.play = run_play,
	.released = on_released,
	.moved = run_on_moved,
	.debt = on_debt,
	.warn = on_warn,
};
