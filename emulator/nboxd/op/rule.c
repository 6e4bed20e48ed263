/* See rule.h. A collective is played when all its real members have arrived, point-to-point calls
 * when both their ends have. */
#include "nboxd/op/rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "nboxd/op/image.h"
#include "timeline/timeline.h"
#include "topology/topology.h"

#define PEERS_MAX                                                                       \
	100000 /* of virtual ranks' point-to-point calls, that are looked at one by one \
		*/

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

/* Times of all ranks: of a communicator's in its order, and of the world's. */
struct ends {
	double *arrive, *end, *world;
};

static double real_arrival(const struct post *post)
{
	return timeline_arrival(post->node, post->member->world_rank);
}

/* The post whose timeline has @world_rank; NULL: none of them has. */
static const struct post *post_with(const struct op *op, uint32_t world_rank)
{
	uint32_t template = timelines_template(op->comm->comms->ops->timelines, world_rank);

	for (uint32_t i = 0; i < op->n_posts; i++)
		if (op->posts[i].member->world_rank == template)
			return &op->posts[i];
	return NULL;
}

static double arrival_at(const struct op *op, uint32_t rank, uint32_t world_rank)
{
	const struct post *post = post_with(op, world_rank);

	if (!post) /* the template is not in this communicator: another stands in, without lag */
		post = &op->posts[template_of(&op->comm->templates, rank)];
	return timeline_arrival(post->node, world_rank);
}

/* @e->end from @e->arrive: who waits for whom. */
static void find_ends(const struct sched *s, double ns, const struct ends *e)
{
	bool is_from_root = s->kind == COLL_BROADCAST || s->kind == COLL_SCATTER;
	bool is_to_root = s->kind == COLL_REDUCE || s->kind == COLL_GATHER;
	double last = -INFINITY;

	for (uint32_t i = 0; i < s->n_ranks; i++)
		last = fmax(last, e->arrive[i]);
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		double from = last;

		if (is_from_root)
			from = fmax(e->arrive[i], e->arrive[s->root]);
		else if (is_to_root && i != s->root)
			from = e->arrive[i];
		e->end[i] = from + ns;
	}
}

/* The op as the ranks of an image of its communicator play it. */
static void play_image(const struct op *op, double ns, const struct radix *image,
		       const struct ends *e)
{
	for (uint32_t i = 0; i < op->sched->n_ranks; i++)
		e->arrive[i] = arrival_at(op, i, radix_at(image, i));
	find_ends(op->sched, ns, e);
	for (uint32_t i = 0; i < op->sched->n_ranks; i++)
		e->world[radix_at(image, i)] = e->end[i];
}

/* The ends of @post's ranks, those outside of the communicator by its images. */
static int end_post(struct post *post, double ns, double plain_end, const struct ends *e)
{
	const struct op *op = post->op;
	struct ops *ops = op->comm->comms->ops;
	uint32_t n, i;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	double spent = e->world[post->member->world_rank] - real_arrival(post);
	struct radix image;

	for (i = 0; i < n; i++) {
		double *end = &e->world[ranks[i]];

		if (isnan(*end) && image_at(op->comm, ranks[i], &image) == 0)
			play_image(op, ns, &image, e);
		if (isnan(*end)) {
			*end = timeline_arrival(post->node, ranks[i]) + spent;
			ops->n_lags_kept += !timeline_is_folded(post->node);
		}
	}
	for (i = 0; i < n; i++)
		e->end[i] = e->world[ranks[i]];
	return timeline_end_each(post->node, e->end, plain_end);
}

static int end_each(const struct run *run, double plain_end, struct err *err)
{
	struct op *op = run->posts[0]->op;
	const struct membership *m = &op->comm->members.map;
	struct ops *ops = op->comm->comms->ops;
	uint32_t world = topology_world(ops->cluster->topology), i;
	double ns = run->timing.end_ns;
	struct ends e;
	int r = 0;

	if (!ops->ends)
		ops->ends = malloc((size_t)3 * world * sizeof(*ops->ends));
	if (!ops->ends)
		return err_set(err, ENOMEM, "no memory for the times of %u ranks", world);
	e = (struct ends){ops->ends, ops->ends + world, ops->ends + 2 * (size_t)world};
	for (i = 0; i < world; i++)
		e.world[i] = NAN;
	for (i = 0; i < m->n_ranks; i++)
		e.arrive[i] = arrival_at(op, i, membership_world(m, i));
	find_ends(op->sched, ns, &e);
	for (i = 0; i < m->n_ranks; i++)
		e.world[membership_world(m, i)] = e.end[i];
	for (i = 0; i < run->n_posts && r == 0; i++)
		r = end_post(run->posts[i], ns, plain_end, &e);
	return r < 0 ? err_set(err, -r, "no memory for the times of an op") : 0;
}

static bool is_alike(const struct run *run)
{
	uint32_t kind = run->posts[0]->op->sched->kind;

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (!timeline_is_folded(run->posts[i]->node))
			return false;
	return kind == COLL_ALLREDUCE || kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER ||
	       kind == COLL_ALLTOALL;
}

/* --- point-to-point calls ------------------------------------------------------------------- */

static double peer_arrival(const struct post *post, uint32_t world_rank)
{
	const struct ops *ops = post->op->comm->comms->ops;

	return timelines_template(ops->timelines, world_rank) == post->member->world_rank
		       ? timeline_arrival(post->node, world_rank)
		       : real_arrival(post);
}

/* When the last of those that @post's calls of this run are with arrives. */
static double last_of(const struct run *run, const struct post *post)
{
	const struct op *op = post->op;
	double last = real_arrival(post);

	for (uint32_t k = 0; k < op->n_flows; k++) {
		uint32_t peer = op->p2p->calls[k].peer;

		if (op->flows[k].turn == run->turn && !bitmap_test(&op->comm->is_real, peer))
			last = fmax(last,
				    peer_arrival(post,
						 membership_world(&op->comm->members.map, peer)));
	}
	return last;
}

/* The same for rank @v, which does what its template does with ranks as far away. */
static double last_of_virtual(const struct run *run, const struct post *post, uint32_t v)
{
	const struct op *op = post->op;
	const struct membership *m = &op->comm->members.map;
	double last = timeline_arrival(post->node, v);

	for (uint32_t k = 0; k < op->n_flows; k++) {
		int64_t peer = (int64_t)membership_world(m, op->p2p->calls[k].peer) -
			       post->member->world_rank + v;

		if (op->flows[k].turn == run->turn && peer >= 0 && peer <= UINT32_MAX &&
		    membership_rank(m, (uint32_t)peer) >= 0)
			last = fmax(last, peer_arrival(post, (uint32_t)peer));
	}
	return last;
}

static int end_p2p_post(const struct run *run, struct post *post, double end, double plain_end)
{
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	bool is_with_all = post->op->n_flows + 1 >= run->comm->n_ranks;
	double *ends;
	int r;

	if (timeline_is_folded(post->node) || is_with_all ||
	    (uint64_t)n * post->op->n_flows > PEERS_MAX)
		return timeline_end_all(post->node, end, plain_end);
	ends = malloc(n * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ends[i] = ranks[i] == post->member->world_rank
				  ? end
				  : last_of_virtual(run, post, ranks[i]) + run->timing.end_ns;
	r = timeline_end_each(post->node, ends, plain_end);
	free(ends);
	return r;
}

/* --- both ----------------------------------------------------------------------------------- */

static int end_all(const struct run *run, double plain_end, struct err *err)
{
	double start = -INFINITY;
	int r = 0;

	for (uint32_t i = 0; i < run->n_posts; i++)
		start = fmax(start,
			     run->call ? real_arrival(run->posts[i]) : last_of(run, run->posts[i]));
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		struct post *post = run->posts[i];

		r = run->call ? timeline_end_all(post->node, start + run->timing.end_ns, plain_end)
			      : end_p2p_post(run, post, start + run->timing.end_ns, plain_end);
	}
	return r < 0 ? err_set(err, -r, "no memory for the times of an op") : 0;
}

static void set_post(const struct run *run, struct post *post)
{
	const struct timing *t = &run->timing;
	uint64_t spent_ns = (uint64_t)ceil(t->end_ns);

	post->number = run->number;
	post->end = timeline_end(post->node);
	post->end_ns = timeline_due_ns(post->node);
	post->start_ns = post->end_ns > spent_ns ? post->end_ns - spent_ns : 0;
	post->model_ns = t->model_ns;
	post->injected_ns = t->end_ns - t->model_ns;
	post->how = t->how;
	post->flags = (t->end_ns < t->bound_ns ? RECORD_BELOW_BOUND : 0) |
		      (t->is_of_model ? RECORD_OF_MODEL : 0);
}

int rule_apply(struct run *run, struct err *err)
{
	double plain = -INFINITY;
	int r;

	for (uint32_t i = 0; i < run->n_posts; i++)
		plain = fmax(plain, timeline_plain_arrival(run->posts[i]->node));
	plain += run->timing.model_ns;
	r = run->call && !is_alike(run) ? end_each(run, plain, err) : end_all(run, plain, err);
	if (r < 0)
		return r;
	run->start_ns = UINT64_MAX;
	for (uint32_t i = 0; i < run->n_posts; i++) {
		struct post *post = run->posts[i];

		set_post(run, post);
		run->start_ns = post->start_ns < run->start_ns ? post->start_ns : run->start_ns;
		run->end_ns = post->end_ns > run->end_ns ? post->end_ns : run->end_ns;
	}
	return 0;
}
