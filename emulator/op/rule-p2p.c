/* See rule-p2p.h. */
#include "op/rule-p2p.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "engine/sim-ranks.h"
#include "op/contention.h"
#include "op/image.h"
#include "op/latest.h"

#define PEERS_MAX (1 << 19) /* of ranks told apart, looked at one by one: some milliseconds */

static double arrival_of(const struct post *post, uint32_t world_rank, bool is_plain)
{
	return is_plain ? timeline_plain_start(post->node) : timeline_start(post->node, world_rank);
}

static double arrival_in(const struct run *run, const struct post *caller, uint32_t world_rank,
			 bool is_plain)
{
	uint32_t template = timelines_template(run->comm->ops->timelines, world_rank);
	double last = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i]->member->world_rank == template)
			last = fmax(last, arrival_of(run->posts[i], world_rank, is_plain));
	return isfinite(last) ? last : arrival_of(caller, world_rank, is_plain);
}

double rule_p2p_arrival(const struct run *run, const struct post *caller, uint32_t rank,
			bool is_plain)
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
	double arrive = timeline_start(post->node, v), end = arrive;
	bool is_member = membership_rank(m, v) >= 0;
	struct radix image;

	if (!is_member && image_at(op->comm, v, &image) != 0) {
		image_warn_none(op->comm, v);
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
	struct ops *ops = post->op->comm->ops;

	if (ops->is_peers_told)
		return;
	ops->is_peers_told = true;
	ops_warn(
		ops,
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

/* It sends to and receives from each of the others: all wait for all. */
static bool is_with_all(const struct post *post, uint32_t n_ranks)
{
	const struct op *op = post->op;
	CLEANUP(bitmap_deinit) struct bitmap met = {0};

	if (op->n_flows + 2 < 2 * n_ranks || bitmap_init(&met, 2 * (uint64_t)n_ranks) < 0)
		return false;
	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];

		if (call->peer != post->member->rank)
			bitmap_set(&met, 2 * (uint64_t)call->peer + call->is_send);
	}
	return bitmap_count(&met) + 2 == 2 * (uint64_t)n_ranks;
}

/* Those that it receives from in @run, or sends more to than the buffers hold. */
static void wait_for_peers(const struct run *run, struct post *post)
{
	const struct op *op = post->op;

	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];
		uint32_t peer = membership_world(&op->comm->members.map, call->peer);

		if (op->flows[k].turn == run->turn &&
		    (!call->is_send || call->bytes > SIM_BUFFER_BYTES))
			latest_is(post, peer, arrival_in(run, post, peer, false));
	}
}

static int end_post(const struct run *run, struct post *post, double end, double plain_end)
{
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	const struct ops *ops = run->comm->ops;
	bool is_alike, with_all, too_much;
	double *ends, more;
	int r;

	is_alike = timeline_is_folded(post->node) && timelines_are_folded(ops->timelines);
	with_all = !is_alike && is_with_all(post, run->comm->n_ranks);
	too_much = !is_alike && is_too_much(run, post, n);
	wait_for_peers(run, post);
	if (too_much && !with_all)
		warn_many_peers(post, n);
	if (is_alike || too_much || (with_all && run->comm->n_ranks == ops->config->world))
		return timeline_end_all(post->node, end, plain_end);
	ends = malloc(n * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	/* what the messages make of it at the real rank */
	more = end - end_by_peers(run, post, post->member->world_rank);
	for (uint32_t i = 0; i < n; i++)
		ends[i] = fmax(timeline_start(post->node, ranks[i]),
			       end_by_peers(run, post, ranks[i]) + more);
	r = timeline_end_each(post->node, ends, plain_end);
	free(ends);
	return r;
}

/* When the last message of @run can begin: with its sender, where the buffers take it and the
 * receiver is real, else when that has come, too. */
static double begin_of(const struct run *run, bool is_plain)
{
	double begin = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *post = run->posts[i];
		const struct op *op = post->op;
		double at = arrival_of(post, post->member->world_rank, is_plain);

		for (uint32_t k = 0; k < op->n_flows && at > begin; k++) {
			const struct sched_p2p *call = &op->p2p->calls[k];

			if (op->flows[k].turn == run->turn &&
			    (call->is_send || call->bytes > SIM_BUFFER_BYTES ||
			     !bitmap_test(&run->comm->is_real, call->peer)))
				begin = at;
		}
	}
	return begin;
}

/* The messages travel from their senders' arrival on; who receives later finds them there. */
static int share(struct run *run, bool is_plain, struct err *err)
{
	double *ends = run->ends + (is_plain ? run->n_posts : 0), end = -INFINITY;
	double takes_ns = is_plain ? run->timing.model_ns : run->timing.end_ns;
	double start = begin_of(run, is_plain), there;
	const struct warp *w;
	int r;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *post = run->posts[i];

		if (ends[i] > arrival_of(post, post->member->world_rank, is_plain))
			end = fmax(end, ends[i]);
	}
	start = fmax(start, end - takes_ns);
	there = fmax(end, start + takes_ns);
	if (!(there > start))
		return 0;
	r = contention_add(run, is_plain, start, there - start, &w, err);
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		double moved = contention_at(w, start, fmin(ends[i], there));

		run->claim[is_plain]->of[i].end = moved;
		ends[i] = fmax(ends[i], moved);
	}
	return r;
}

int rule_p2p_end(struct run *run, struct err *err)
{
	int r = share(run, false, err);

	if (r == 0 && config_moves_times(run->comm->ops->config))
		r = share(run, true, err);
	else
		memcpy(run->ends + run->n_posts, run->ends, run->n_posts * sizeof(*run->ends));
	for (uint32_t i = 0; i < run->n_posts && r == 0; i++)
		if (end_post(run, run->posts[i], run->ends[i], run->ends[run->n_posts + i]) < 0)
			r = err_set(err, ENOMEM, "no memory for the times of an op");
	return r;
}
