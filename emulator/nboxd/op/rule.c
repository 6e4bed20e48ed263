/* See rule.h. A collective is played when all its real members have arrived, point-to-point calls
 * when both their ends have. */
#include "nboxd/op/rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/ends.h"
#include "engine/sim-ranks.h"
#include "nboxd/loop/warn.h"
#include "nboxd/op/image.h"
#include "topology/topology.h"

#define PEERS_MAX (1 << 19) /* of ranks told apart, looked at one by one: some milliseconds */

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
	double *plain; /* ends without what-ifs, in the order of the communicator */
	bool is_early; /* not all its members have arrived */
};

static void apart_deinit(struct apart *a)
{
	ends_unref(a->ends);
	ends_unref(a->plain_ends);
}

static double real_arrival(const struct post *post)
{
	return timeline_arrival(post->node, post->member->world_rank);
}

/* The post whose timeline has @world_rank. Where its template is not in this communicator another
 * stands in: timeline_arrival() knows how late its ranks come. */
static const struct post *post_with(const struct op *op, uint32_t rank, uint32_t world_rank)
{
	uint32_t template = timelines_template(op->comm->comms->ops->timelines, world_rank);

	for (uint32_t i = 0; i < op->n_posts; i++)
		if (op->posts[i].member->world_rank == template)
			return &op->posts[i];
	return &op->posts[template_of(&op->comm->templates, rank)];
}

/* INFINITY: not known yet. */
static double arrival_at(const struct op *op, uint32_t rank, uint32_t world_rank)
{
	const struct post *post = post_with(op, rank, world_rank);

	return post->has_arrived ? timeline_arrival(post->node, world_rank) : INFINITY;
}

static int apart_init(struct apart *a, struct op *op, const struct timing *t, uint64_t number,
		      struct err *err)
{
	struct ops *ops = op->comm->comms->ops;
	struct comm_ops *open = op->comm->open;
	uint32_t world = topology_world(ops->cluster->topology);
	const struct membership *m = &op->comm->members.map;
	const struct border *border = op->call->has_border ? &op->call->border : NULL;
	int r;

	*a = (struct apart){.op = op, .timing = t, .is_early = op->n_arrived < op->n_posts};
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
	if (r < 0 || !ops->config->n_what_ifs)
		return r;
	return solver_ends(ops->solver, op->comm->number, op->sched, m, border, number, t, true,
			   &a->plain_ends, err);
}

static double plain_arrival_at(const struct op *op, uint32_t rank, uint32_t world_rank)
{
	const struct post *post = post_with(op, rank, world_rank);

	return post->has_arrived ? timeline_plain_arrival(post->node) : INFINITY;
}

/* A connection has buffers for so many ops at least (NCCL_STEPS): nobody ends an op that waits for
 * nobody before all have come to the op that many before. @came: when they did. */
static void wait_for_buffers(const struct apart *a, double *came, double *end)
{
	uint32_t n = a->op->sched->n_ranks, i;
	double *slot = &came[a->op->rooted % ROOTED_AHEAD_MAX], from = *slot, last = -INFINITY;

	for (i = 0; i < n && a->op->rooted > ROOTED_AHEAD_MAX; i++)
		end[i] = fmax(end[i], from);
	for (i = 0; i < n; i++)
		last = fmax(last, a->arrive[i]);
	if (!a->is_early)
		*slot = last;
}

/* Of a scatter that does not fit the buffers: members take turns at the root's port. One that has
 * not arrived yet may have come earlier, by virtual time: it counts as if it were there with the
 * root. What waits for it still does. */
static int share_root(const struct apart *a, const double *busy, struct err *err)
{
	uint32_t n = a->op->sched->n_ranks, i;
	double *end = a->plain, root = a->arrive[a->op->sched->root];
	int r;

	for (i = 0; i < n; i++)
		a->arrive[i] = isinf(a->arrive[i]) ? root : a->arrive[i];
	r = ends_solve(a->ends, a->arrive, busy, a->timing->extra_ns, end, NULL, err);
	for (i = 0; i < n && r == 0; i++)
		a->end[i] = fmax(a->end[i], end[i]);
	return r;
}

/* The op as its communicator plays it: ends, and what follows for the ops after it. */
static int play_here(const struct apart *a, struct err *err)
{
	const struct op *op = a->op;
	const struct membership *m = &op->comm->members.map;
	double *busy = op->comm->open->busy, *plain_busy = busy + m->n_ranks;
	uint32_t i;
	int r;

	for (i = 0; i < m->n_ranks; i++)
		a->arrive[i] = arrival_at(op, i, membership_world(m, i));
	r = ends_solve(a->ends, a->arrive, busy, a->timing->extra_ns, a->end,
		       a->is_early ? NULL : busy, err);
	if (r == 0 && op->rooted)
		wait_for_buffers(a, op->comm->open->came, a->end);
	if (r == 0 && a->is_early && op->sched->kind == COLL_SCATTER)
		r = share_root(a, busy, err);
	for (i = 0; r == 0 && i < m->n_ranks; i++)
		a->world[membership_world(m, i)] = a->end[i];
	if (r < 0 || !a->plain_ends)
		return r;
	for (i = 0; i < m->n_ranks; i++)
		a->arrive[i] = plain_arrival_at(op, i, membership_world(m, i));
	r = ends_solve(a->plain_ends, a->arrive, plain_busy, 0, a->plain,
		       a->is_early ? NULL : plain_busy, err);
	if (r == 0 && op->rooted)
		wait_for_buffers(a, op->comm->open->plain_came, a->plain);
	return r;
}

/* The op as the ranks of an image of its communicator play it. */
static int play_image(const struct apart *a, const struct radix *image, struct err *err)
{
	uint32_t n = a->op->sched->n_ranks;
	int r;

	for (uint32_t i = 0; i < n; i++)
		a->arrive[i] = arrival_at(a->op, i, radix_at(image, i));
	r = ends_solve(a->ends, a->arrive, NULL, a->timing->extra_ns, a->end, NULL, err);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		a->world[radix_at(image, i)] = a->end[i];
	return r;
}

/* A rank keeps its lag where nobody knows whom it meets. */
static void warn_no_image(const struct op *op, uint32_t world_rank)
{
	struct ops *ops = op->comm->comms->ops;

	if (ops->is_lag_told)
		return;
	ops->is_lag_told = true;
	warn_run(
		"communicator %u of %u ranks: rank %u copies a member of it, and in which like it that rank is "
		"itself is not known: there nobody waits for ranks that are slow; say how the ranks are laid out "
		"(--layout tp=8,dp=64)",
		op->comm->number, op->comm->n_ranks, world_rank);
}

/* Ends @post at the ranks of its timeline, those outside of the communicator by its images. Return:
 * 0; 1: some end is not known yet; negative errno with the sentence. */
static int end_post(const struct apart *a, struct post *post, struct err *err)
{
	uint32_t n, i;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	double own = a->world[post->member->world_rank], spent = own - real_arrival(post);
	double plain = a->plain_ends ? a->plain[post->member->rank] : own;
	struct radix image;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		double *end = &a->world[ranks[i]];

		if (isnan(*end) && image_at(a->op->comm, ranks[i], &image) == 0)
			r = play_image(a, &image, err);
		if (isnan(*end)) {
			*end = timeline_arrival(post->node, ranks[i]) + spent;
			warn_no_image(a->op, ranks[i]);
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
	const struct membership *m = &c->members.map;

	for (uint32_t i = 0; i < c->n_ranks && !c->open->is_looked_at; i++) {
		uint32_t world_rank = membership_world(m, i);
		uint32_t template = timelines_template(c->comms->ops->timelines, world_rank);

		c->open->lacks_template |= membership_rank(m, template) < 0;
	}
	c->open->is_looked_at = true;
	return !c->open->lacks_template;
}

static bool is_alike(const struct run *run)
{
	if (run->comm->comms->config->n_what_ifs && !has_all_templates(run->comm))
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

	if (r == 0)
		r = play_here(&a, err);
	if (r == 0)
		run->timing.how = ends_how(a.ends);
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		if (!run->posts[i]->is_released)
			r = end_post(&a, run->posts[i], err);
	return r;
}

/* --- point-to-point calls ------------------------------------------------------------------- */

static double arrival_of(const struct post *post, uint32_t world_rank, bool is_plain)
{
	return is_plain ? timeline_plain_arrival(post->node)
			: timeline_arrival(post->node, world_rank);
}

static double arrival_in(const struct run *run, const struct post *caller, uint32_t world_rank,
			 bool is_plain)
{
	uint32_t template = timelines_template(run->comm->comms->ops->timelines, world_rank);
	double last = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i]->member->world_rank == template)
			last = fmax(last, arrival_of(run->posts[i], world_rank, is_plain));
	return isfinite(last) ? last : arrival_of(caller, world_rank, is_plain);
}

double rule_arrival(const struct run *run, const struct post *caller, uint32_t rank, bool is_plain)
{
	return arrival_in(run, caller, membership_world(&run->comm->members.map, rank), is_plain);
}

/* Whether @world_rank is in @image, or with NULL in @post's communicator. */
static bool is_beside(const struct post *post, const struct radix *image, int64_t world_rank)
{
	const struct membership *m = &post->op->comm->members.map;

	if (world_rank < 0 || world_rank > UINT32_MAX)
		return false;
	return image ? radix_find(image, (uint32_t)world_rank) >= 0
		     : membership_rank(m, (uint32_t)world_rank) >= 0;
}

/* When rank @v is over with the calls that @run plays of @post, its own template's or its own: it
 * does what that does with ranks as far away. It waits for those that it receives from, and for
 * those that take what does not fit its buffers. */
static double end_by_peers(const struct run *run, const struct post *post, uint32_t v)
{
	const struct op *op = post->op;
	const struct membership *m = &op->comm->members.map;
	double arrive = timeline_arrival(post->node, v), end = arrive;
	bool is_member = membership_rank(m, v) >= 0;
	struct radix image;

	if (!is_member && image_at(op->comm, v, &image) != 0) {
		warn_no_image(op, v);
		return arrive + run->timing.end_ns;
	}
	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];
		int64_t peer =
			(int64_t)membership_world(m, call->peer) - post->member->world_rank + v;
		double share = 1, both = arrive;

		if (op->flows[k].turn != run->turn)
			continue;
		if (call->is_send)
			share -= (double)SIM_BUFFER_BYTES / (double)(call->bytes ? call->bytes : 1);
		if (share > 0 && is_beside(post, is_member ? NULL : &image, peer))
			both = fmax(both, arrival_in(run, post, (uint32_t)peer, false));
		if (share > 0)
			end = fmax(end, both + share * run->timing.end_ns);
	}
	return end;
}

static void warn_many_peers(const struct post *post, uint32_t n)
{
	struct ops *ops = post->op->comm->comms->ops;

	if (ops->is_peers_told)
		return;
	ops->is_peers_told = true;
	warn_run(
		"rank %u and the %u ranks that copy it have %u point-to-point calls each: too many to look at one "
		"by one; they are all over with rank %u",
		post->member->world_rank, n - 1, post->op->n_flows, post->member->world_rank);
}

/* Whether end_by_peers() of @n ranks takes too long. */
static bool is_too_much(const struct run *run, const struct post *post, uint32_t n)
{
	const struct membership *m = &run->comm->members.map;
	uint64_t search = m->table ? 1 + m->n_ranks / 16 : 1;

	return n * search * post->op->n_flows * run->n_posts > PEERS_MAX;
}

static int end_p2p_post(const struct run *run, struct post *post, double end, double plain_end)
{
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	const struct ops *ops = run->comm->comms->ops;
	/* a send to and a receive from each: all wait for all */
	bool is_with_all = post->op->n_flows + 2 >= 2 * run->comm->n_ranks, is_alike;
	double *ends, more;
	int r;

	is_alike = timeline_is_folded(post->node) && timelines_are_folded(ops->timelines);
	if (!is_alike && !is_with_all && is_too_much(run, post, n))
		warn_many_peers(post, n);
	if (is_alike || (is_with_all && run->comm->n_ranks == ops->config->world) ||
	    is_too_much(run, post, n))
		return timeline_end_all(post->node, end, plain_end);
	ends = malloc(n * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	/* what the messages make of it at the real rank */
	more = end - end_by_peers(run, post, post->member->world_rank);
	for (uint32_t i = 0; i < n; i++)
		ends[i] = fmax(timeline_arrival(post->node, ranks[i]),
			       end_by_peers(run, post, ranks[i]) + more);
	r = timeline_end_each(post->node, ends, plain_end);
	free(ends);
	return r;
}

/* --- both ----------------------------------------------------------------------------------- */

/* Nothing tells the ranks apart. */
static int end_alike(const struct run *run, struct err *err)
{
	double start = -INFINITY, plain = -INFINITY;
	int r = 0;

	free(run->comm->open->busy); /* nobody sends any more when it is over */
	run->comm->open->busy = NULL;
	for (uint32_t i = 0; i < run->n_posts; i++) {
		start = fmax(start, real_arrival(run->posts[i]));
		plain = fmax(plain, timeline_plain_arrival(run->posts[i]->node));
	}
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		r = timeline_end_all(run->posts[i]->node, start + run->timing.end_ns,
				     plain + run->timing.model_ns);
	return r < 0 ? err_set(err, -r, "no memory for the times of an op") : 0;
}

static int end_p2p(const struct run *run, struct err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		r = end_p2p_post(run, run->posts[i], run->ends[i], run->ends[run->n_posts + i]);
	return r < 0 ? err_set(err, -r, "no memory for the times of an op") : 0;
}

static void set_post(const struct timing *t, uint64_t number, struct post *post)
{
	uint64_t spent_ns = (uint64_t)ceil(t->end_ns), arrive_ns = post->arrive.arrive_ns;
	uint64_t due_ns = timeline_due_ns(post->node);

	post->number = number;
	post->end = timeline_end(post->node);
	/* the gate before may have kept the rank from arriving in time */
	post->end_ns = due_ns > arrive_ns ? due_ns : arrive_ns;
	post->start_ns = post->end_ns - arrive_ns > spent_ns ? post->end_ns - spent_ns : arrive_ns;
	post->model_ns = t->model_ns;
	post->injected_ns = t->end_ns - t->model_ns;
	post->how = t->how;
	post->flags = (t->end_ns < t->bound_ns ? RECORD_BELOW_BOUND : 0) |
		      (t->is_of_model ? RECORD_OF_MODEL : 0);
}

int rule_apply(struct run *run, struct err *err)
{
	int r;

	if (!run->call)
		r = end_p2p(run, err);
	else
		r = is_alike(run) ? end_alike(run, err) : end_each(run, err);
	if (r < 0)
		return r;
	run->start_ns = UINT64_MAX;
	for (uint32_t i = 0; i < run->n_posts; i++) {
		struct post *post = run->posts[i];

		set_post(&run->timing, run->number, post);
		run->start_ns = post->start_ns < run->start_ns ? post->start_ns : run->start_ns;
		run->end_ns = post->end_ns > run->end_ns ? post->end_ns : run->end_ns;
	}
	return 0;
}

int rule_apply_early(struct op *op, struct post *post, struct err *err)
{
	CLEANUP(apart_deinit) struct apart a = {0};
	struct ops *ops = op->comm->comms->ops;
	struct timing timing;
	int r;

	if (!op->rooted || ops->config->exchange != EXCHANGE_NONE ||
	    op->rooted > op->comm->open->n_started + ROOTED_AHEAD_MAX)
		return 1;
	r = solver_solve(ops->solver, op->comm->number, op->sched, &op->comm->members.map, NULL,
			 op->number, &timing, err);
	if (r == 0)
		r = apart_init(&a, op, &timing, op->number, err);
	if (r == 0)
		r = play_here(&a, err);
	timing.how = r == 0 ? ends_how(a.ends) : timing.how;
	if (r == 0)
		r = end_post(&a, post, err);
	if (r == 0)
		set_post(&timing, op->number, post);
	return r;
}
