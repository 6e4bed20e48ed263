/* slow: one virtual rank computes more slowly, or its links are slower.
 *
 *   slow:rank=17,compute=1.5    rank 17 needs half as long again between two ops:
 *                               it arrives (1.5 - 1) x the template's time late
 *                               (not at a communicator's first op of a kind: what is
 *                               before it is set-up, and comes with 0)
 *   slow:rank=17,link=2         its messages occupy their links twice as long
 *
 * Ops that the rank takes no part in are not touched. Where the model answers whole
 * ops only, a slow link makes the whole op longer by the factor, latency and all:
 * the other ranks of a collective wait for the slowest. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

struct slow {
	const struct nbox_next *next;
	uint32_t rank;
	double compute, link; /* >= 1 */
};

static int parse(struct slow *s, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	uint64_t rank = 0;

	s->compute = s->link = 1;
	if (h->parse_count(h, "rank", nbox_value(kv, n, "rank"), &rank) < 0 ||
	    h->parse_ratio(h, "compute", nbox_value(kv, n, "compute"), &s->compute) < 0 ||
	    h->parse_ratio(h, "link", nbox_value(kv, n, "link"), &s->link) < 0)
		return -1;
	if (rank > UINT32_MAX) {
		h->error(h, "rank: %llu is no rank", (unsigned long long)rank);
		return -1;
	}
	if (s->compute < 1 || s->link < 1) {
		h->error(h, "%s: %g is below 1: it would be faster, and nobody waits for the fast",
			 s->compute < 1 ? "compute" : "link", s->compute < 1 ? s->compute : s->link);
		return -1;
	}
	if (!nbox_value(kv, n, "compute") && !nbox_value(kv, n, "link")) {
		h->error(h, "give compute=, link= or both: by which factor the rank is slower");
		return -1;
	}
	s->rank = (uint32_t)rank;
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
	return op->has_rank && op->has_rank(op, s->rank);
}

static int slow_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			struct nbox_delay *ret)
{
	const struct slow *s = model;
	int r = s->next->message(s->next, op, msg, ret);

	if (r == 0 && msg->hop != NBOX_SELF && (msg->src == s->rank || msg->dst == s->rank))
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

static int slow_arrival(void *model, const struct nbox_op *op, double compute_ns,
			double *ret_late_ns)
{
	const struct slow *s = model;

	if (s->compute <= 1 || compute_ns <= 0 || !takes_part(s, op))
		return 1;
	*ret_late_ns = compute_ns * (s->compute - 1);
	return 0;
}

/* Without messages below, extra() does what message() would. */
static uint32_t slow_traits(void *model)
{
	const struct slow *s = model;
	int no_messages = s->link <= 1 || !s->next->message;

	return NBOX_DECORATOR | NBOX_STEADY | (no_messages ? NBOX_NO_MESSAGES : 0);
}

static const struct nbox_param params[] = {
	{"rank", "rank", NULL, "world rank of the slow one"},
	{"compute", "ratio", "1", "its computation takes this many times as long"},
	{"link", "ratio", "1", "its messages occupy their links this many times as long"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD,
	.name = "slow",
	.summary = "one rank computes more slowly, or its links are slower",
	.flags = NBOX_DECORATOR | NBOX_STEADY,
	.params = params,
	.create = slow_create,
	.destroy = free,
	.message = slow_message,
	.extra = slow_extra,
	.arrival = slow_arrival,
	.traits = slow_traits,
};
