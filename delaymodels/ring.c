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
#include "alpha-beta.h"

static int ring_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)next;
	return hops_create(host, kv, n_kv, UINT64_C(1) << 20, ret_model);
}

static int ring_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	const struct hops *m = model;
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

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's", "latency of a step"},
	{"bw", "bandwidth", "the cluster's", "bandwidth of a hop"},
	{"chunk", "bytes", "1M", "a broadcast or reduce is pipelined in chunks of this size"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "ring",        .summary = "closed forms of the ring algorithms (alpha-beta)",
	.flags = NBOX_UNIFORM, .params = params,
	.create = ring_create, .destroy = free,
	.op = ring_op,         .message = hops_message,
};
