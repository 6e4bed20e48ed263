/* See contention.h. */
#include "op/contention.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fabric/fabric.h"
#include "op/awaited.h"
#include "op/ideal.h"
#include "op/images.h"

struct move {
	const struct warp *from, *to;
};

static double moved_end(void *ctx, double end)
{
	const struct move *m = ctx;

	return warp_move(m->from, m->to, end);
}

/* A post that is played by several runs has the end of the last one. */
static void move_node(const struct claim *c, struct claimed *of, struct move *move)
{
	double before = of->end, debt_ns;

	of->end = warp_move(move->from, move->to, before);
	if (timeline_real_end(of->node, c->is_plain) > before + 1)
		return; /* NAN: there is but one */
	debt_ns = timeline_move_end(of->node, c->is_plain, moved_end, move);
	if (!config_moves_times(c->ops->config)) /* the plain end is this one */
		timeline_move_end(of->node, true, moved_end, move);
	if (debt_ns > 0 && !c->is_plain)
		c->ops->sink->debt(c->ops, debt_ns);
}

static void move_message(const struct claim *c, struct claimed *of, struct move *move)
{
	of->end = warp_move(move->from, move->to, of->end);
	if (c->p2p && of->sent != UINT32_MAX)
		c->p2p->sent[of->sent].at[c->is_plain] = of->end;
	if (of->post)
		awaited_move(of->post, of->call, c->is_plain, of->end);
}

static void moved(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	struct claim *c = tag;
	struct move move = {from, to};

	(void)ctx;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->of[i].node)
			move_node(c, &c->of[i], &move);
		else
			move_message(c, &c->of[i], &move);
	if (c->is_plain || !c->run)
		return;
	c->run->waits_ns += warp_span(to) - warp_span(from);
	c->ops->sink->moved(c->run);
}

static void forgotten(void *ctx, void *tag)
{
	struct claim *c = tag;

	(void)ctx;
	if (c->run)
		c->run->claim[c->is_plain] = NULL;
	if (c->held)
		*c->held = NULL;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct claimed *of = &c->of[i];

		if (c->p2p && of->sent != UINT32_MAX)
			c->p2p->sent[of->sent].claim[c->is_plain] = NULL;
		timeline_node_release(of->node);
		awaited_unref(of->post);
	}
	claim_free(c);
}

struct claim *claim_new(bool is_plain, uint32_t n)
{
	struct claim *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct claim){.is_plain = is_plain, .room = n, .of = calloc(n + 1, sizeof(*c->of))};
	return c->of ? c : claim_free(c);
}

struct claim *claim_free(struct claim *c)
{
	if (c)
		free(c->of);
	free(c);
	return NULL;
}

int claim_add(struct claim *c, const struct claimed *end)
{
	uint32_t room = 2 * c->room + 8;
	struct claimed *more = c->n < c->room ? c->of : realloc(c->of, room * sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->room = c->n < c->room ? c->room : room;
	c->of = more;
	c->of[c->n++] = *end;
	return 0;
}

int contention_open(struct ops *ops)
{
	const struct overlap_sink sink = {moved, forgotten, NULL};
	const struct config *c = ops->config;
	int r = overlap_new(&sink, &ops->overlap[0]);

	if (r == 0)
		r = overlap_new(&sink, &ops->overlap[1]);
	return r ? r
		 : link_changes_tell(c->link_changes, c->n_link_changes, c->fabric,
				     ops->overlap[0]);
}

void contention_close(struct ops *ops)
{
	for (int i = 0; i < 2; i++)
		ops->overlap[i] = overlap_free(ops->overlap[i]);
}

static struct claim *claim_of_run(struct run *run, bool is_plain)
{
	struct claim *c = claim_new(is_plain, run->n_posts);

	if (!c)
		return NULL;
	c->run = run;
	for (c->n = 0; c->n < run->n_posts; c->n++)
		c->of[c->n] = (struct claimed){.node = timeline_node_hold(run->posts[c->n]->node),
					       .sent = UINT32_MAX,
					       .end = NAN};
	return c;
}

/* The op before @run in the queues of its real ranks: the last one that was told. */
static uint64_t before(const struct run *run, bool is_plain)
{
	const struct comm_ops *open = run->comm->open;
	uint64_t last = 0;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		uint64_t own =
			open->members[run->posts[i]->member - run->comm->real].claimed[is_plain];

		last = own > last ? own : last;
	}
	return last;
}

static void queue_up(struct run *run, bool is_plain, uint64_t number)
{
	for (uint32_t i = 0; i < run->n_posts; i++)
		run->comm->open->members[run->posts[i]->member - run->comm->real]
			.claimed[is_plain] = number;
}

/* The last of its real ranks comes, whatever was before it. */
static double arrival_of(const struct run *run, bool is_plain)
{
	double last = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *p = run->posts[i];

		last = fmax(last, is_plain ? timeline_plain_arrival(p->node)
					   : timeline_arrival(p->node, p->member->world_rank));
	}
	return last;
}

static int find_usage(const struct run *run, struct usage **ret, struct err *err)
{
	CLEANUP(images_deinit) struct images x = {.comm = run->comm};
	const struct usage_images images = {images_next, &x};

	return solver_usage(run->comm->ops->solver, run->comm->number, run->posts[0]->op->sched,
			    &run->comm->members.map, run->number, &images, ret, err);
}

/* Together they are faster than their bytes through a link. */
static void warn_below_bound(const struct post *first, struct rate_peak peak)
{
	const struct comm *c = first->op->comm;
	struct ops *ops = c->ops;
	const struct fabric *f = delay_fabric(ops->delay);
	char name[OP_NAME_MAX], link[64] = "a port";

	if (ops->is_below_bound_told)
		return;
	ops->is_below_bound_told = true;
	if (f)
		fabric_link_name(f, peak.link, link, sizeof(link));
	ops_warn(ops,
		 "%s and others at the same time: by the model %s carries %.3g times what it can",
		 op_name(first->op->key.seq, first->member->rank, c->number, name, sizeof(name)),
		 link, peak.load);
}

/* What links do to the op by itself that its solo time knows nothing of. */
static int find_later(struct ops *ops, bool is_plain, const struct overlap_op *op,
		      double *ret_later_ns)
{
	const struct config *c = ops->config;
	bool has_ecmp = c->fabric && c->fabric->network.ecmp;

	*ret_later_ns = 0;
	return has_ecmp || (!is_plain && c->n_link_changes)
		       ? overlap_alone(ops->overlap[is_plain], op->usage, op->begin, op->solo_ns,
				       ret_later_ns)
		       : 0;
}

int contention_claim(const struct post *post, struct claim *c, struct overlap_op *op,
		     struct contention *ret, struct err *err)
{
	struct ops *ops = post->op->comm->ops;
	struct overlap *overlap = ops->overlap[c->is_plain];
	struct rate_peak peak;

	c->ops = ops;
	op->tag = c;
	if (ops->ideal && ops->ideal->shares_no_link)
		op->usage = NULL;
	if (find_later(ops, c->is_plain, op, &ret->later_ns) ||
	    overlap_add(overlap, op, &ret->number, &ret->warp))
		return err_set(err, ENOMEM, "no memory for ops that share the network");
	peak = overlap_peak(overlap);
	ret->is_below_bound = peak.load > 1 + 1e-6;
	if (ret->is_below_bound)
		warn_below_bound(post, peak);
	return 0;
}

int contention_add(struct run *run, bool is_plain, double start, double solo_ns,
		   const struct warp **ret, struct err *err)
{
	struct ops *ops = run->comm->ops;
	struct overlap_op op = {
		.usage = run->usage,
		.solo_ns = solo_ns,
		.start = fmin(start, arrival_of(run, is_plain)),
		.begin = start,
		.after = before(run, is_plain),
	};
	struct contention got;
	int r = 0;

	if (run->timing.is_ahead && !is_plain)
		op.usage = NULL; /* what is left is not the op's bytes */
	else if (!op.usage && run->call && !(ops->ideal && ops->ideal->shares_no_link))
		r = find_usage(run, &op.usage, err);
	if (r)
		return r;
	run->claim[is_plain] = claim_of_run(run, is_plain);
	if (!run->claim[is_plain])
		return err_set(err, ENOMEM, "no memory for ops that share the network");
	r = contention_claim(run->posts[0], run->claim[is_plain], &op, &got, err);
	if (r < 0)
		return r;
	run->later_ns[is_plain] = got.later_ns;
	if (!is_plain && !config_moves_times(ops->config))
		run->later_ns[1] = got.later_ns;
	run->is_below_bound |= got.is_below_bound;
	queue_up(run, is_plain, got.number);
	if (!is_plain)
		run->waits_ns = warp_span(got.warp) - solo_ns;
	*ret = got.warp;
	return 0;
}

double contention_at(const struct warp *w, double start, double at)
{
	double done = at - start;

	return done > 0 ? at + warp_at(w, done) - (w->bends[0].at + done) : at;
}
