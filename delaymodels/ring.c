/* ring: closed forms of the ring algorithms, in the alpha-beta model.
 *
 *   n ranks, S = bytes of the op (see nbox_op), alpha and bw of the slowest hop
 *   AllReduce       2 (n-1) (alpha + S/n / bw)
 *   AllGather       (n-1) (alpha + S / bw)        S: one rank's contribution
 *   ReduceScatter   (n-1) (alpha + S / bw)        S: one rank's result
 *   Broadcast,      (n-1) alpha + (n-2+k) (S/k) / bw     k = ceil(S / chunk):
 *   Reduce          a chain, pipelined in k equal chunks
 *   others          no ring: message by message, alpha + bytes * flows / bw
 *
 * A communicator that spans nodes has both kinds of hop in its ring; all ranks
 * step together, so the slower hop sets the pace: the larger alpha, the smaller bw.
 * Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
 * communication operations in MPICH", IJHPCA 19(1), 2005; P. Patarasuk, X. Yuan,
 * "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
 * 69(2), 2009; the pipelined chain: E. Chan, M. Heimlich, A. Purkayastha, R. van
 * de Geijn, "Collective communication: theory, practice, and experience", CCPE
 * 19(13), 2007. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

struct ring {
	double alpha_ns;     /* < 0: the cluster's */
	double bytes_per_ns; /* 0: the cluster's */
	uint64_t chunk_bytes;
};

static int parse(struct ring *m, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	m->alpha_ns = -1;
	m->chunk_bytes = UINT64_C(1) << 20;
	if (h->parse_time(h, "alpha", nbox_value(kv, n, "alpha"), &m->alpha_ns) < 0 ||
	    h->parse_bandwidth(h, "bw", nbox_value(kv, n, "bw"), &m->bytes_per_ns) < 0 ||
	    h->parse_bytes(h, "chunk", nbox_value(kv, n, "chunk"), &m->chunk_bytes) < 0)
		return -1;
	if (m->chunk_bytes == 0) {
		h->error(h, "chunk: 0 bytes; a chunk must have at least one");
		return -1;
	}
	return 0;
}

static int ring_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct ring *m = calloc(1, sizeof(*m));

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

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double hop_alpha(const struct ring *m, const struct nbox_net *net, int is_inter)
{
	if (m->alpha_ns >= 0)
		return m->alpha_ns;
	return is_inter ? net->inter_latency_ns : net->intra_latency_ns;
}

static double hop_bw(const struct ring *m, const struct nbox_net *net, int is_inter)
{
	if (m->bytes_per_ns > 0)
		return m->bytes_per_ns;
	return is_inter ? net->inter_bytes_per_ns : net->intra_bytes_per_ns;
}

static int ring_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	const struct ring *m = model;
	int has_inter = op->n_nodes > 1, has_intra = op->n_ranks > op->n_nodes;
	double n = op->n_ranks, bytes = (double)op->bytes, chunks, alpha, bw;

	if (op->n_ranks <= 1) {
		*ret_ns = 0;
		return 0;
	}
	alpha = hop_alpha(m, op->net, has_inter);
	bw = hop_bw(m, op->net, has_inter);
	if (has_inter && has_intra) {
		alpha = larger(alpha, hop_alpha(m, op->net, 0));
		bw = smaller(bw, hop_bw(m, op->net, 0));
	}
	switch (op->kind) {
	case NBOX_ALLREDUCE:
		*ret_ns = 2 * (n - 1) * (alpha + bytes / n / bw);
		return 0;
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
		*ret_ns = (n - 1) * (alpha + bytes / bw);
		return 0;
	case NBOX_BROADCAST:
	case NBOX_REDUCE:
		chunks = (double)(op->bytes / m->chunk_bytes + (op->bytes % m->chunk_bytes != 0));
		chunks = larger(chunks, 1);
		*ret_ns = (n - 1) * alpha + (n - 2 + chunks) * (bytes / chunks) / bw;
		return 0;
	default:
		return 1;
	}
}

static int ring_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			struct nbox_delay *ret)
{
	const struct ring *m = model;
	int is_inter = msg->hop == NBOX_INTER;

	*ret = (struct nbox_delay){0, 0};
	if (msg->hop == NBOX_SELF)
		return 0;
	ret->latency_ns = hop_alpha(m, op->net, is_inter);
	ret->occupancy_ns =
		(double)msg->bytes * (double)msg->flows / hop_bw(m, op->net, is_inter);
	return 0;
}

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's", "latency of a step"},
	{"bw", "bandwidth", "the cluster's", "bandwidth of a hop"},
	{"chunk", "bytes", "1M", "a broadcast or reduce is pipelined in chunks of this size"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD,
	.name = "ring",
	.summary = "closed forms of the ring algorithms (alpha-beta)",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = ring_create,
	.destroy = free,
	.op = ring_op,
	.message = ring_message,
};
