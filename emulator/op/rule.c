/* See rule.h. A collective is played when all its real members have arrived, point-to-point calls
 * when both their ends have. */
#include "op/rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/ends.h"
#include "engine/record.h"
#include "op/awaited.h"
#include "op/contention.h"
#include "op/ideal.h"
#include "op/image.h"
#include "op/latest.h"
#include "op/messages.h"
#include "op/moment.h"
#include "op/rule-p2p.h"
#include "topology/topology.h"

int rule_is_ready(struct op *op, struct pair_post **ret_ready, struct err *err)
{
	int r;

	*ret_ready = NULL;
	if (!op->p2p)
		return op->n_arrived == op->n_posts;
	r = pairing_add(&op->comm->open->pairing, &op->p2p->pair, &op->comm->is_real, ret_ready,
			err);
	return r < 0 ? r : *ret_ready != NULL;
}

/* --- a collective --------------------------------------------------------------------------- */

/* Ends of a collective whose ranks are told apart. */
struct apart {
	struct op *op;
	const struct timing *timing;
	struct ends *ends, *plain_ends; /* plain_ends NULL: there are no what-ifs */
	double *arrive, *end;           /* of a communicator's ranks, in its order */
	double *world;                  /* ends of the world's ranks; NAN: not known yet */
	double *plain;           /* ends without what-ifs, in the order of the communicator */
	struct post *early;      /* ends before all have arrived; NULL: all have */
	struct run *run;         /* NULL: early */
	const struct warp *warp; /* with what-ifs, of members and images; NULL: nothing to share */
};

static void apart_deinit(struct apart *a)
{
	ends_unref(a->ends);
	ends_unref(a->plain_ends);
}

static double real_start(const struct post *post)
{
	return timeline_start(post->node, post->member->world_rank);
}

/* INFINITY: not known yet. */
static double arrival_at(const struct op *op, uint32_t rank, uint32_t world_rank, bool is_plain)
{
	const struct post *post = op_post_with(op, rank, world_rank);

	if (!post->has_arrived)
		return INFINITY;
	return is_plain ? timeline_plain_start(post->node) : timeline_start(post->node, world_rank);
}

static int apart_init(struct apart *a, struct op *op, const struct timing *t, uint64_t number,
		      struct err *err)
{
	struct ops *ops = op->comm->ops;
	struct comm_ops *open = op->comm->open;
	uint32_t world = topology_world(ops->cluster->topology);
	const struct membership *m = &op->comm->members.map;
	const struct border *border = op->call->has_border ? &op->call->border : NULL;
	int r;

	*a = (struct apart){.op = op, .timing = t};
	if (!ops->ends)
		ops->ends = malloc((size_t)4 * world * sizeof(*ops->ends));
	if (!open->busy)
		open->busy = calloc((size_t)2 * m->n_ranks, sizeof(*open->busy));
	if (!ops->ends || !open->busy)
		return err_set(err, ENOMEM, "no memory for the times of %u ranks", world);
	a->arrive = ops->ends;
	a->end = a->arrive + world;
	a->world = a->end + world;
	a->plain = a->world + world;
	for (uint32_t i = 0; i < world; i++)
		a->world[i] = NAN;
	r = solver_ends(ops->solver, op->comm->number, op->sched, m, border, number, t, false,
			&a->ends, err);
	if (r < 0 || !config_moves_times(ops->config))
		return r;
	return solver_ends(ops->solver, op->comm->number, op->sched, m, border, number, t, true,
			   &a->plain_ends, err);
}

/* NCCL's buffers between two ranks take ROOTED_AHEAD_MAX ops: who waits for nobody ends an op when
 * all have come to the one that many before. (In NCCL a rank further down a chain may be as many
 * more behind.) @came: when they came. */
static void wait_for_buffers(const struct apart *a, double *came, double *end)
{
	uint32_t n = a->op->sched->n_ranks, i;
	double *slot = &came[a->op->rooted % ROOTED_AHEAD_MAX], from = *slot, last = -INFINITY;

	for (i = 0; i < n && a->op->rooted > ROOTED_AHEAD_MAX; i++)
		end[i] = fmax(end[i], from);
	for (i = 0; i < n; i++)
		last = fmax(last, a->arrive[i]);
	if (!a->early)
		*slot = last;
}

/* Of a scatter that does not fit the buffers: members take turns at the root's port. One that has
 * not arrived yet may have come earlier, by virtual time: it counts as if it had come with the
 * root, or with @a->early, whichever keeps that longer. What waits for it still does. */
static int share_root(const struct apart *a, struct ends *e, bool is_plain, const double *busy,
		      double *end, struct err *err)
{
	const struct membership *m = &a->op->comm->members.map;
	uint32_t root = a->op->sched->root, own = a->early->member->rank, i;
	double *shared = is_plain ? a->end : a->plain; /* not in use */
	double with[2] = {a->arrive[root], fmax(a->arrive[root], a->arrive[own])};
	double extra_ns = is_plain ? 0 : a->timing->extra_ns;
	int r = 0;

	for (int k = 0; k < 2 && r == 0; k++) {
		for (i = 0; i < m->n_ranks; i++) {
			a->arrive[i] = arrival_at(a->op, i, membership_world(m, i), is_plain);
			if (isinf(a->arrive[i]))
				a->arrive[i] = with[k];
		}
		r = ends_solve(e, a->arrive, busy, extra_ns, shared, NULL, err);
		for (i = 0; i < m->n_ranks && r == 0; i++)
			end[i] = fmax(end[i], shared[i]);
	}
	return r;
}

static double last_of(const double *at, uint32_t n)
{
	double last = -INFINITY;

	for (uint32_t i = 0; i < n; i++)
		last = fmax(last, at[i]);
	return last;
}

/* Ends of members that arrive at @a->arrive. Where most has been sent before, what is left takes
 * its time from when the last one comes. */
static int solve_ends(const struct apart *a, struct ends *e, bool is_plain, const double *busy,
		      double *end, double *ret_busy, struct err *err)
{
	uint32_t n = a->op->sched->n_ranks;
	bool is_ahead = !is_plain && a->timing->is_ahead;
	double extra_ns = is_plain || is_ahead ? 0 : a->timing->extra_ns;
	double over = last_of(a->arrive, n) + a->timing->end_ns;
	int r = ends_solve(e, a->arrive, busy, extra_ns, end, ret_busy, err);

	for (uint32_t i = 0; r == 0 && is_ahead && i < n; i++) {
		end[i] = fmax(a->arrive[i], fmin(end[i], over));
		if (ret_busy)
			ret_busy[i] = fmin(ret_busy[i], over);
	}
	return r;
}

/* The op as its communicator plays it: ends, and what follows for the ops after it. */
static int play(const struct apart *a, struct ends *e, bool is_plain, double *end, struct err *err)
{
	const struct op *op = a->op;
	struct comm_ops *open = op->comm->open;
	const struct membership *m = &op->comm->members.map;
	double *busy = open->busy + (is_plain ? m->n_ranks : 0);
	int r;

	for (uint32_t i = 0; i < m->n_ranks; i++)
		a->arrive[i] = arrival_at(op, i, membership_world(m, i), is_plain);
	r = solve_ends(a, e, is_plain, busy, end, a->early ? NULL : busy, err);
	if (r == 0 && op->rooted)
		wait_for_buffers(a, is_plain ? open->plain_came : open->came, end);
	if (r == 0 && a->early && op->sched->kind == COLL_SCATTER)
		r = share_root(a, e, is_plain, busy, end, err);
	return r;
}

/* Ends @end of the members that arrive at @a->arrive, beside other ops. What moves before the last
 * has arrived is little. */
static int share(struct apart *a, bool is_plain, double *end, struct err *err)
{
	uint32_t n = a->op->sched->n_ranks;
	double start = last_of(a->arrive, n), solo_ns = last_of(end, n) - start;
	double *busy = a->op->comm->open->busy + (is_plain ? n : 0);
	const struct warp *w;
	int r;

	if (!a->run || !(solo_ns > 0) || isinf(start))
		return 0;
	r = contention_add(a->run, is_plain, start, solo_ns, &w, err);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		end[i] = contention_at(w, start, end[i]);
		busy[i] = contention_at(w, start, busy[i]);
	}
	if (r == 0 && !is_plain)
		a->warp = w;
	return r;
}

static int play_here(struct apart *a, struct err *err)
{
	const struct membership *m = &a->op->comm->members.map;
	int r = play(a, a->ends, false, a->end, err);

	if (r == 0)
		r = share(a, false, a->end, err);
	for (uint32_t i = 0; r == 0 && i < m->n_ranks; i++)
		a->world[membership_world(m, i)] = a->end[i];
	if (r == 0 && a->early)
		latest_of_ranks(&a->early, 1, a->arrive);
	else if (r == 0)
		latest_of_ranks(a->run->posts, a->run->n_posts, a->arrive);
	if (r < 0 || !a->plain_ends)
		return r;
	r = play(a, a->plain_ends, true, a->plain, err);
	return r < 0 ? r : share(a, true, a->plain, err);
}

/* The op as the ranks of an image of its communicator play it. */
static int play_image(const struct apart *a, const struct radix *image, struct err *err)
{
	uint32_t n = a->op->sched->n_ranks;
	double start;
	int r;

	for (uint32_t i = 0; i < n; i++)
		a->arrive[i] = arrival_at(a->op, i, radix_at(image, i), false);
	r = solve_ends(a, a->ends, false, NULL, a->end, NULL, err);
	start = last_of(a->arrive, n);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		a->world[radix_at(image, i)] =
			a->warp ? contention_at(a->warp, start, a->end[i]) : a->end[i];
	return r;
}

/* Ends @post at the ranks of its timeline, those outside of the communicator by its images. Return:
 * 0; 1: some end is not known yet; negative errno with the sentence. */
static int end_post(const struct apart *a, struct post *post, struct err *err)
{
	uint32_t n, i;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	double own = a->world[post->member->world_rank], spent = own - real_start(post);
	double plain = a->plain_ends ? a->plain[post->member->rank] : own;
	struct radix image;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		double *end = &a->world[ranks[i]];

		if (isnan(*end) && image_at(a->op->comm, ranks[i], &image) == 0)
			r = play_image(a, &image, err);
		if (isnan(*end)) {
			*end = timeline_start(post->node, ranks[i]) + spent;
			image_warn_none(a->op->comm, ranks[i]);
		}
		if (r == 0 && isinf(*end))
			r = 1;
	}
	for (i = 0; i < n && r == 0; i++)
		a->end[i] = a->world[ranks[i]];
	if (r == 0 && timeline_end_each(post->node, a->end, plain) < 0)
		return err_set(err, ENOMEM, "no memory for the times of an op");
	return r;
}

/* Whether no rank of @c copies a real rank that is not in it. */
static bool has_all_templates(struct comm *c)
{
	for (uint32_t i = 0; i < c->n_ranks && !c->open->is_looked_at; i++) {
		uint32_t template =
			timelines_template(c->ops->timelines, membership_world(&c->members.map, i));
		bool is_there = false;

		for (uint32_t k = 0; k < c->n_real && !is_there; k++)
			is_there = c->real[k].world_rank == template;
		c->open->lacks_template |= !is_there;
	}
	c->open->is_looked_at = true;
	return !c->open->lacks_template;
}

static bool is_alike(const struct run *run)
{
	if (config_moves_times(run->comm->ops->config) && !has_all_templates(run->comm))
		return false;
	for (uint32_t i = 0; i < run->n_posts; i++)
		if (!timeline_is_folded(run->posts[i]->node))
			return false;
	return !run->posts[0]->op->rooted;
}

static int end_each(struct run *run, struct err *err)
{
	CLEANUP(apart_deinit) struct apart a = {0};
	int r = apart_init(&a, run->posts[0]->op, &run->timing, run->number, err);

	a.run = run;
	if (r == 0)
		r = play_here(&a, err);
	if (r == 0)
		run->timing.how = ends_how(a.ends);
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		if (!run->posts[i]->is_released)
			r = end_post(&a, run->posts[i], err);
	return r;
}

/* --- both ----------------------------------------------------------------------------------- */

static int shared_end(struct run *run, bool is_plain, double start, double solo_ns, double *ret_end,
		      struct err *err)
{
	const struct warp *w;
	int r;

	*ret_end = start + solo_ns;
	if (!(solo_ns > 0))
		return 0;
	r = contention_add(run, is_plain, start, solo_ns, &w, err);
	if (r == 0)
		*ret_end = warp_at(w, solo_ns);
	return r;
}

/* Nothing tells the ranks apart. */
static int end_alike(struct run *run, struct err *err)
{
	double start = -INFINITY, plain_start = -INFINITY, end, plain_end;
	int r;

	free(run->comm->open->busy); /* nobody sends any more when it is over */
	run->comm->open->busy = NULL;
	for (uint32_t i = 0; i < run->n_posts; i++) {
		start = fmax(start, real_start(run->posts[i]));
		plain_start = fmax(plain_start, timeline_plain_start(run->posts[i]->node));
	}
	latest_of_posts(run);
	r = shared_end(run, false, start, run->timing.end_ns, &end, err);
	plain_end = end;
	if (r == 0 && config_moves_times(run->comm->ops->config))
		r = shared_end(run, true, plain_start, run->timing.model_ns, &plain_end, err);
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		r = timeline_end_all(run->posts[i]->node, end, plain_end);
	return r;
}

/* At a size that bandwidth decides, nccl-tests' as in nbox perf. */
static bool is_far_above(const struct timing *t, const struct sched *s)
{
	bool is_in_parts = s->kind == COLL_ALLGATHER || s->kind == COLL_REDUCESCATTER ||
			   s->kind == COLL_ALLTOALL;

	return t->bound_ns > 0 && t->model_ns > 2 * t->bound_ns &&
	       s->bytes * (is_in_parts ? s->n_ranks : 1) >= UINT64_C(64) << 20;
}

static void set_times(struct post *post, double spent)
{
	uint64_t spent_ns = (uint64_t)ceil(spent), arrive_ns = post->arrive.arrive_ns;
	uint64_t due_ns = timeline_due_ns(post->node);

	post->end = timeline_end(post->node);
	/* the gate before may have kept the rank from arriving in time */
	post->end_ns = due_ns > arrive_ns ? due_ns : arrive_ns;
	post->start_ns = post->end_ns - arrive_ns > spent_ns ? post->end_ns - spent_ns : arrive_ns;
}

/* @later_ns: as a run has it. */
static void set_post(const struct timing *t, const double later_ns[2], uint64_t number,
		     struct post *post)
{
	set_times(post, t->end_ns);
	post->number = number;
	post->model_ns = t->model_ns + later_ns[1];
	post->injected_ns = t->end_ns + later_ns[0] - post->model_ns;
	post->how = t->how;
	post->flags = (t->end_ns < t->bound_ns && !t->is_ahead ? RECORD_BELOW_BOUND : 0) |
		      (is_far_above(t, post->op->sched) ? RECORD_FAR_ABOVE : 0) |
		      (t->is_of_model ? RECORD_OF_MODEL : 0);
}

/* What the longest of the messages takes that it waits for. */
static void set_message(struct post *post)
{
	const struct p2p *p2p = post->op->p2p;
	const struct awaited *a = p2p->awaited;
	const struct awaited_call *longest = NULL;
	double ns[2] = {0, 0};

	post->flags |= p2p->is_below_bound ? RECORD_BELOW_BOUND : 0;
	for (uint32_t i = 0; i < a->n && p2p->plan; i++) {
		ns[0] = fmax(ns[0], a->of[i].ns[0]);
		ns[1] = fmax(ns[1], a->of[i].ns[1]);
	}
	for (uint32_t i = 0; i < a->n && !p2p->plan; i++)
		if (a->of[i].ns[0] > (longest ? longest->ns[0] : 0))
			longest = &a->of[i];
	if (!longest && !p2p->plan)
		return;
	post->model_ns = longest ? longest->ns[1] : ns[1];
	post->injected_ns = (longest ? longest->ns[0] : ns[0]) - post->model_ns;
}

void rule_move_posts(struct run *run)
{
	run->start_ns = UINT64_MAX;
	run->end_ns = 0;
	for (uint32_t i = 0; i < run->n_posts; i++) {
		struct post *post = run->posts[i];

		if (!post)
			continue;
		if (run->has_messages) {
			post->shared_ns = awaited_shared(post->op->p2p->awaited);
			set_times(post, post->model_ns + post->injected_ns + post->shared_ns);
		} else {
			set_times(post, run->timing.end_ns + run->waits_ns);
			post->shared_ns = fmax(0, run->waits_ns - run->later_ns[0]);
		}
		post->queued_ns =
			real_start(post) - timeline_arrival(post->node, post->member->world_rank);
		run->start_ns = post->start_ns < run->start_ns ? post->start_ns : run->start_ns;
		if (run->has_messages && post->end_ns >= run->end_ns)
			run->waits_ns = post->shared_ns;
		run->end_ns = post->end_ns > run->end_ns ? post->end_ns : run->end_ns;
	}
}

int rule_apply(struct run *run, struct err *err)
{
	int r;

	if (!run->call)
		r = rule_p2p_end(run, err);
	else
		r = is_alike(run) ? end_alike(run, err) : end_each(run, err);
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		set_post(&run->timing, run->later_ns, run->number, run->posts[i]);
		run->posts[i]->flags |= run->is_below_bound ? RECORD_BELOW_BOUND : 0;
		if (!run->call)
			run->posts[i]->flags |= run->posts[i]->op->p2p->flags;
		if (run->has_messages)
			set_message(run->posts[i]);
	}
	if (r == 0)
		rule_move_posts(run);
	return r;
}

/* A send that the buffers take: it need not meet its receiver. */
static int apply_early_p2p(struct post *post, struct err *err)
{
	struct ops *ops = post->op->comm->ops;
	int r;

	if (ops->config->exchange != EXCHANGE_NONE || !messages_wait_for_nobody(post->op))
		return 1;
	r = rule_p2p_end_early(post, err);
	if (r < 0)
		return r;
	set_post(&post->op->p2p->timing, (const double[2]){0, 0}, ops->n_ops++, post);
	if (post->op->p2p->plan)
		set_message(post);
	post->flags |= post->op->p2p->flags;
	post->flags |= post->op->p2p->is_below_bound ? RECORD_BELOW_BOUND : 0;
	return 0;
}

int rule_apply_early(struct op *op, struct post *post, struct err *err)
{
	CLEANUP(apart_deinit) struct apart a = {0};
	struct ops *ops = op->comm->ops;
	struct timing timing;
	int r;

	if (op->p2p)
		return apply_early_p2p(post, err);
	if (!op->rooted || ops->config->exchange != EXCHANGE_NONE ||
	    op->rooted > op->comm->open->n_started + ROOTED_AHEAD_MAX)
		return 1;
	moment_of_op(op);
	r = solver_solve(ops->solver, op->comm->number, op->sched, &op->comm->members.map, NULL,
			 op->number, &timing, err);
	if (r == 0)
		ideal_apply(op->comm, &timing);
	if (r == 0)
		r = apart_init(&a, op, &timing, op->number, err);
	a.early = post;
	if (r == 0)
		r = play_here(&a, err);
	timing.how = r == 0 ? ends_how(a.ends) : timing.how;
	if (r == 0)
		r = end_post(&a, post, err);
	if (r == 0)
		set_post(&timing, (const double[2]){0, 0}, op->number, post);
	return r;
}
