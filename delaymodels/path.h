/* What a message finds on its way, for link models: the links of its path where a scheduler made
 * the op (struct nbox_plan), else its hop. */
#ifndef PATH_H
#define PATH_H

#include "nbox-delaymodel.h"

struct path {
	double latency_ns;  /* of the ends and of all links */
	double ns_per_byte; /* on the link that is slowest for this message, flows shared */
	uint32_t flows;     /* most that share a link */
	double bytes;       /* that cross the links */
	double least_ns;    /* what the lane alone makes of them */
};

static inline struct path path_of(const struct nbox_op *op, const struct nbox_message *msg)
{
	int is_inter = msg->hop == NBOX_INTER;
	struct path p = {.latency_ns = msg->step_ns, .flows = msg->flows, .bytes = msg->wire_bytes};

	for (uint32_t i = 0; i < msg->n_links; i++) {
		const struct nbox_link *l = &msg->links[i];
		double ns = (double)l->flows / l->bytes_per_ns;

		p.latency_ns += l->latency_ns;
		p.ns_per_byte = ns > p.ns_per_byte ? ns : p.ns_per_byte;
		p.flows = l->flows > p.flows ? l->flows : p.flows;
	}
	if (msg->n_links && msg->lane_bytes_per_ns > 0)
		p.least_ns = p.bytes / msg->lane_bytes_per_ns;
	if (!msg->n_links && msg->hop != NBOX_SELF) {
		const struct nbox_net *net = op->net;

		p.latency_ns = is_inter ? net->inter_latency_ns : net->intra_latency_ns;
		p.ns_per_byte = (double)msg->flows /
				(is_inter ? net->inter_bytes_per_ns : net->intra_bytes_per_ns);
		p.bytes = (double)msg->bytes;
	}
	return p;
}

static inline double path_longer(double a, double b)
{
	return a > b ? a : b;
}

#endif
