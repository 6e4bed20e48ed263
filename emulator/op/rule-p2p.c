/* See rule-p2p.h. */
#include "op/rule-p2p.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "op/awaited.h"
#include "op/contention.h"
#include "op/image.h"
#include "op/latest.h"
#include "op/messages.h"
#include "op/p2p-start.h"
#include "op/resharding.h"

#define PEERS_MAX (1 << 19) /* of ranks told apart, looked at one by one: some milliseconds */

/* Whether @world_rank is in @image, or with NULL in @post's communicator. */
static bool is_beside(const struct post *post, const struct radix *image, int64_t world_rank)
{
	const struct membership *m = &post->op->comm->members.map;

	if (world_rank < 0 || world_rank > UINT32_MAX)
		return false;
	return image ? radix_find(image, (uint32_t)world_rank) >= 0
		     : membership_rank(m, (uint32_t)world_rank) >= 0;
}

/* When @call is over that takes @ns by itself: at its caller, which comes at @own, as its peer does
 * at
 * @peer. */
static double over_at(const struct op *op, const struct sched_p2p *call, double own, double peer,
		      double ns)
{
	double taken = p2p_buffered(op, call->bytes), begin = call->is_send ? own : peer;
	double full = begin + taken * ns, both = fmax(own, peer);

	if (call->is_send && op->p2p->pair.is_onesided)
		return own + ns;
	if (taken >= 1)
		return call->is_send ? own : fmax(own, full);
	if (!call->is_send)
		return fmax(own, full) + (1 - taken) * ns;
	return taken > 0.5 ? fmax(both, begin + (1 - taken) * ns)
			   : fmax(both, full) + (1 - 2 * taken) * ns;
}

/* The same where all send to all: they have begun when all are there. */
static double over_together(const struct op *op, const struct sched_p2p *call, double own,
			    double peer, double ns)
{
	double taken = call->is_send ? p2p_buffered(op, call->bytes) : 0;

	return taken < 1 ? fmax(own, peer) + (1 - taken) * ns : own;
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
		double there = arrive;

		if (op->flows[k].turn != run->turn)
			continue;
		if (is_beside(post, is_member ? NULL : &image, peer))
			there = p2p_start(run, post, (uint32_t)peer, false);
		end = fmax(end,
			   run->has_messages
				   ? over_at(op, call, arrive, there, run->timing.end_ns)
				   : over_together(op, call, arrive, there, run->timing.end_ns));
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

/* Those that it receives from in @run, or sends more to than the buffers hold. */
static void wait_for_peers(const struct run *run, struct post *post)
{
	const struct op *op = post->op;

	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];
		uint32_t peer = membership_world(&op->comm->members.map, call->peer);

		if (op->flows[k].turn == run->turn &&
		    (!call->is_send || p2p_buffered(op, call->bytes) < 1))
			latest_is(post, peer, p2p_start(run, post, peer, false));
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

	if (post->op->p2p->plan) {
		wait_for_peers(run, post);
		return resharding_end(post, end, plain_end);
	}
	is_alike = timeline_is_folded(post->node) && timelines_are_folded(ops->timelines);
	with_all = !is_alike && messages_are_alltoall(post->op);
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

/* All send to all: the messages are one op, which begins when all are there. */
static int share(struct run *run, bool is_plain, struct err *err)
{
	double *ends = run->ends + (is_plain ? run->n_posts : 0), start = -INFINITY, end = start;
	double takes_ns = is_plain ? run->timing.model_ns : run->timing.end_ns, there;
	const struct warp *w;
	int r;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *post = run->posts[i];

		start = fmax(start, post_start(post, is_plain));
		end = fmax(end, ends[i]);
	}
	start = fmax(start, end - takes_ns);
	there = fmax(end, start + takes_ns);
	for (uint32_t i = 0; run->timing.is_ahead && !is_plain && i < run->n_posts; i++)
		ends[i] = fmin(ends[i] - run->timing.extra_ns, there); /* from the last start on */
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

static int share_all(struct run *run, struct err *err)
{
	int r = share(run, false, err);

	if (r == 0 && config_moves_times(run->comm->ops->config))
		r = share(run, true, err);
	else
		memcpy(run->ends + run->n_posts, run->ends, run->n_posts * sizeof(*run->ends));
	return r;
}

int rule_p2p_end(struct run *run, struct err *err)
{
	int r = run->has_messages ? messages_play(run, err) : share_all(run, err);

	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		struct awaited *a = run->has_messages ? run->posts[i]->op->p2p->awaited : NULL;

		if (end_post(run, run->posts[i], a ? awaited_end(a, false) : run->ends[i],
			     a ? awaited_end(a, true) : run->ends[run->n_posts + i]) < 0)
			r = err_set(err, ENOMEM, "no memory for the times of an op");
		if (a)
			a->is_told = true;
	}
	return r;
}

int rule_p2p_end_early(struct post *post, struct err *err)
{
	struct awaited *a = post->op->p2p->awaited;
	double spent = awaited_end(a, false) - post_start(post, false);
	CLEANUP(freep) double *ends = NULL;
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	int r;

	if (post->op->p2p->plan) {
		r = resharding_end(post, awaited_end(a, false), awaited_end(a, true));
	} else if (timeline_is_folded(post->node)) {
		r = timeline_end_all(post->node, awaited_end(a, false), awaited_end(a, true));
	} else {
		ends = malloc(n * sizeof(*ends));
		for (uint32_t i = 0; ends && i < n; i++)
			ends[i] = timeline_start(post->node, ranks[i]) + spent;
		r = ends ? timeline_end_each(post->node, ends, awaited_end(a, true)) : -ENOMEM;
	}
	a->is_told = true;
	return r < 0 ? err_set(err, ENOMEM, "no memory for the times of an op") : 0;
}
