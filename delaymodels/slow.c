/* slow: some ranks, virtual or real, compute more slowly, or their links are slower.
 *
 *   slow:rank=17,compute=1.5    each stretch of rank 17's computation takes it 1.5
 *                               times as long as its template
 *   slow:rank=17,link=2         its messages occupy their links twice as long; a
 *                               message between two slow ranks is slow once
 *   slow:rank=16-23+40,link=2   the same for several ranks
 *   slow:node=2,link=2          the same for all ranks of a node
 *
 * Ops that none of the ranks takes part in are not touched. Where the model answers whole
 * ops only, a slow link makes the whole op longer by the factor, latency and all:
 * the other ranks of a collective wait for the slowest. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

struct slow {
	const struct nbox_next *next;
	struct nbox_ranks who;
	double compute, link; /* >= 1 */
};

static int parse(struct slow *s, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	s->compute = s->link = 1;
	if (h->parse_ranks(h, kv, n, &s->who) < 0 ||
	    h->parse_ratio(h, "compute", nbox_value(kv, n, "compute"), &s->compute) < 0 ||
	    h->parse_ratio(h, "link", nbox_value(kv, n, "link"), &s->link) < 0)
		return -1;
	if (s->who.n == 0) {
		h->error(h,
			 "give rank= or node=: who is slow, such as rank=17, rank=16-23 or node=2");
		return -1;
	}
	if (s->compute < 1 || s->link < 1) {
		h->error(h, "%s: %g is below 1: it would be faster, and nobody waits for the fast",
			 s->compute < 1 ? "compute" : "link",
			 s->compute < 1 ? s->compute : s->link);
		return -1;
	}
	if (!nbox_value(kv, n, "compute") && !nbox_value(kv, n, "link")) {
		h->error(h, "give compute=, link= or both: by which factor they are slower");
		return -1;
	}
	return 0;
}

static int slow_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct slow *s = calloc(1, sizeof(*s));

	if (!s) {
		host->error(host, "out of memory");
		return -1;
	}
	s->next = next;
	if (parse(s, host, kv, n_kv) < 0) {
		free(s);
		return -1;
	}
	*ret_model = s;
	return 0;
}

static int takes_part(const struct slow *s, const struct nbox_op *op)
{
	size_t i;

	for (i = 0; op->has_rank && i < s->who.n; i++)
		if (op->has_rank(op, s->who.ranks[i]))
			return 1;
	return 0;
}

static int slow_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			struct nbox_delay *ret)
{
	const struct slow *s = model;
	int r = s->next->message(s->next, op, msg, ret);

	if (r == 0 && msg->hop != NBOX_SELF &&
	    (nbox_ranks_have(&s->who, msg->src) || nbox_ranks_have(&s->who, msg->dst)))
		ret->occupancy_ns *= s->link;
	return r;
}

static int slow_extra(void *model, const struct nbox_op *op, double so_far_ns, int from_messages,
		      double *ret_extra_ns)
{
	const struct slow *s = model;

	if (from_messages || s->link <= 1 || op->n_ranks <= 1 || !takes_part(s, op))
		return 1;
	*ret_extra_ns = so_far_ns * (s->link - 1);
	return 0;
}

static int slow_segment(void *model, const struct nbox_segment *seg, double ns, double *ret_ns)
{
	const struct slow *s = model;

	if (!nbox_ranks_have(&s->who, seg->rank))
		return 1;
	*ret_ns = ns * s->compute;
	return 0;
}

/* Over a model without messages extra() does the work of message(). */
static uint32_t slow_traits(void *model)
{
	const struct slow *s = model;
	int no_messages = s->link <= 1 || !s->next->message;

	return NBOX_DECORATOR | NBOX_STEADY | NBOX_BY_RANKS | (no_messages ? NBOX_NO_MESSAGES : 0) |
	       (s->compute <= 1 ? NBOX_NO_SEGMENTS : 0);
}

static const struct nbox_param params[] = {
	{"rank", "ranks", "none",
	 "world ranks of the slow ones, such as 17, 16-23 or 1+5; or node must be given"},
	{"node", "nodes", "none", "all ranks of these nodes, such as 2 or 2-3"},
	{"compute", "ratio", "1", "their computation takes this many times as long"},
	{"link", "ratio", "1", "their messages occupy their links this many times as long"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "slow",
	.summary = "some ranks compute more slowly, or their links are slower",
	.flags = NBOX_DECORATOR | NBOX_STEADY | NBOX_BY_RANKS,
	.params = params,
	.create = slow_create,
	.destroy = free,
	.message = slow_message,
	.extra = slow_extra,
	.segment = slow_segment,
	.traits = slow_traits,
};
