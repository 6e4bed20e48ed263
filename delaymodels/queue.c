/* queue: a link that too many flows share loses bandwidth, as where its queue fills, packets are
 * marked (ECN) and senders slow down by more than their share.
 *
 *   occupancy of a link = bytes x flows / bandwidth x (1 + penalty x max(0, flows - threshold))
 *
 * The slowest link of the path counts. With a penalty of 0 it is alphabeta. The form is the
 * simplest that has a threshold; it claims no more than that. */
#include <stdlib.h>

#include "path.h"

struct queue {
	uint64_t threshold;
	double penalty;
};

static int queue_create(const struct nbox_host *h, const struct nbox_next *next,
			const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct queue *m = calloc(1, sizeof(*m));

	(void)next;
	if (!m) {
		h->error(h, "out of memory");
		return -1;
	}
	if (h->parse_count(h, "threshold", nbox_value(kv, n_kv, "threshold"), &m->threshold) < 0 ||
	    h->parse_ratio(h, "penalty", nbox_value(kv, n_kv, "penalty"), &m->penalty) < 0) {
		free(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

static double factor(const struct queue *m, uint32_t flows)
{
	return flows > m->threshold ? 1 + m->penalty * (double)(flows - m->threshold) : 1;
}

static int queue_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			 struct nbox_delay *ret)
{
	const struct queue *m = model;
	struct path p = path_of(op, msg);
	double ns = msg->n_links ? 0 : p.bytes * p.ns_per_byte * factor(m, msg->flows);

	*ret = (struct nbox_delay){0, 0};
	if (msg->hop == NBOX_SELF)
		return 0;
	for (uint32_t i = 0; i < msg->n_links; i++) {
		const struct nbox_link *l = &msg->links[i];

		ns = path_longer(ns, p.bytes * (double)l->flows / l->bytes_per_ns *
					     factor(m, l->flows));
	}
	*ret = (struct nbox_delay){p.latency_ns, path_longer(ns, p.least_ns)};
	return 0;
}

static const struct nbox_param params[] = {
	{"threshold", "count", NULL, "flows that a link carries without loss"},
	{"penalty", "ratio", NULL, "of the time, for each flow more"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "queue",          .summary = "a link that too many flows share loses bandwidth",
	.flags = NBOX_UNIFORM,    .params = params,
	.create = queue_create,   .destroy = free,
	.message = queue_message,
};
