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

static int parse(struct hops *m, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	static const char *const alphas[] = {"intra_alpha", "inter_alpha"};
	static const char *const bws[] = {"intra_bw", "inter_bw"};

	if (hops_parse(m, h, kv, n) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if (h->parse_time(h, alphas[i], nbox_value(kv, n, alphas[i]), &m->alpha_ns[i]) <
			    0 ||
		    h->parse_bandwidth(h, bws[i], nbox_value(kv, n, bws[i]), &m->bytes_per_ns[i]) <
			    0)
			return -1;
	return 0;
}

static int alphabeta_create(const struct nbox_host *host, const struct nbox_next *next,
			    const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct hops *m = calloc(1, sizeof(*m));

	(void)next;
	if (!m) {
		host->error(host, "out of memory");
		return -1;
	}
	if (parse(m, host, kv, n_kv) < 0) {
		free(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

static int alphabeta_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			     struct nbox_delay *ret)
{
	*ret = hops_message(model, op, msg);
	return 0;
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
	.message = alphabeta_message,
};
