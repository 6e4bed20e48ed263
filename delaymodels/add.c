/* add: a fixed delay on ops of a kind, or on the messages of a hop.
 *
 *   add:delay=5ms                    each op takes 5 ms longer
 *   add:op=allreduce,delay=5ms       each AllReduce
 *   add:hop=inter,delay=2us          each message between nodes is 2 us later
 *
 * A delay on a hop is latency: it moves arrivals, and occupies no link. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

enum { HOP_INTRA, HOP_INTER, HOP_ALL, HOP_NONE };

struct add {
	const struct nbox_next *next;
	double delay_ns;
	uint32_t op; /* 0: all; else 1 + enum nbox_op_kind */
	uint32_t hop;
};

static int parse(struct add *a, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	const char *op = nbox_value(kv, n, "op"), *hop = nbox_value(kv, n, "hop");

	if (op && hop) {
		h->error(h,
			 "op=%s and hop=%s exclude each other: the delay is on ops or on "
			 "messages; use two what-ifs",
			 op, hop);
		return -1;
	}
	a->hop = HOP_NONE;
	if (h->parse_time(h, "delay", nbox_value(kv, n, "delay"), &a->delay_ns) < 0 ||
	    h->parse_choice(h, "op", op, "all|" NBOX_OP_KINDS, &a->op) < 0 ||
	    h->parse_choice(h, "hop", hop, "intra|inter|all", &a->hop) < 0)
		return -1;
	return 0;
}

static int add_create(const struct nbox_host *host, const struct nbox_next *next,
		      const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct add *a = calloc(1, sizeof(*a));

	if (!a) {
		host->error(host, "out of memory");
		return -1;
	}
	a->next = next;
	if (parse(a, host, kv, n_kv) < 0) {
		free(a);
		return -1;
	}
	*ret_model = a;
	return 0;
}

static int add_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
		       struct nbox_delay *ret)
{
	const struct add *a = model;
	int r = a->next->message(a->next, op, msg, ret);

	if (r == 0 && msg->hop != NBOX_SELF &&
	    (a->hop == HOP_ALL || a->hop == (msg->hop == NBOX_INTER ? HOP_INTER : HOP_INTRA)))
		ret->latency_ns += a->delay_ns;
	return r;
}

static int add_extra(void *model, const struct nbox_op *op, double so_far_ns, int from_messages,
		     double *ret_extra_ns)
{
	const struct add *a = model;

	(void)so_far_ns, (void)from_messages;
	if (a->hop != HOP_NONE || (a->op != 0 && a->op != op->kind + 1))
		return 1;
	*ret_extra_ns = a->delay_ns;
	return 0;
}

static uint32_t add_traits(void *model)
{
	const struct add *a = model;

	return NBOX_DECORATOR | NBOX_UNIFORM | (a->hop == HOP_NONE ? NBOX_NO_MESSAGES : 0);
}

static const struct nbox_param params[] = {
	{"delay", "time", NULL, "how much is added"},
	{"op", "choice", "all", "to ops of this kind (" NBOX_OP_KINDS "|all)"},
	{"hop", "choice", "none", "to messages of this hop instead (intra|inter|all)"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "add",
	.summary = "adds a delay to ops of a kind, or to messages of a hop",
	.flags = NBOX_DECORATOR | NBOX_UNIFORM,
	.params = params,
	.create = add_create,
	.destroy = free,
	.message = add_message,
	.extra = add_extra,
	.traits = add_traits,
};
