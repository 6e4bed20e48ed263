/* alphabeta: the time of each message is alpha + bytes / bandwidth.
 *
 *   latency   = alpha of the hop
 *   occupancy = bytes * flows / bw of the hop
 *
 * The flows that use the sender's port at the same time share it equally. A message of a rank to
 * itself costs nothing. The time of an op follows from its schedule, message by message.
 * Source: R. Hockney, "The communication challenge for MPP: Intel Paragon and
 * Meiko CS-2", Parallel Computing 20(3), 1994. */
#include "alpha-beta.h"

static int alphabeta_create(const struct nbox_host *host, const struct nbox_next *next,
			    const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)next;
	return hops_create(host, kv, n_kv, 1, ret_model);
}

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's", "latency of a message on any hop"},
	{"bw", "bandwidth", "the cluster's", "bandwidth of a rank's port on any hop"},
	{"intra_alpha", "time", "alpha", "latency inside a node"},
	{"intra_bw", "bandwidth", "bw", "bandwidth inside a node"},
	{"inter_alpha", "time", "alpha", "latency between nodes"},
	{"inter_bw", "bandwidth", "bw", "bandwidth between nodes"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "alphabeta",
	.summary = "each message takes alpha + bytes / bandwidth; the op follows from its schedule",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = alphabeta_create,
	.destroy = free,
	.message = hops_message,
};
