/* alltoall: closed forms of direct exchange, every rank with every other, in the
 * alpha-beta model. All messages are posted at once, so that their latencies
 * overlap and each port is busy without a gap.
 *
 *   n ranks, r of them on a node, S = bytes of the op (see nbox_op)
 *   alpha    the larger one of the hops that there are
 *   X(b)     time of a port for b bytes to each of the others: nodes have a port for
 *            their inside and one for the outside, used at the same time:
 *            max((r-1) b / bw_intra, (n-r) b / bw_inter); with bw= given one port
 *            for all: (n-1) b / bw
 *
 *   AllToAll, AllGather, ReduceScatter, Gather, Scatter    alpha + X(S)
 *   AllReduce            2 (alpha + X(S/n))   scatter and reduce, then gather
 *   Broadcast, Reduce    2 (alpha + X(S/n))   scatter and gather, and the reverse
 *   SendRecv             alpha + S / bw, bw the slowest of the hops that there are
 *
 * Sources: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient
 * algorithms for all-to-all communications in multiport message-passing systems",
 * IEEE TPDS 8(11), 1997 (bandwidth bound); scatter and gather: R. Rabenseifner,
 * "Optimization of collective reduction operations", ICCS 2004; van de Geijn's
 * broadcast: M. Barnett et al., "Interprocessor collective communication library",
 * SHPCC 1994. */
#include "alpha-beta.h"

static int alltoall_create(const struct nbox_host *host, const struct nbox_next *next,
			   const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)next;
	return hops_create(host, kv, n_kv, 1, ret_model);
}

/* What the op's ranks are connected by. */
struct ports {
	double alpha_ns;
	double n_intra, n_inter; /* peers of a rank on each port */
	double intra_bw, inter_bw;
};

static struct ports ports_of(const struct hops *m, const struct nbox_op *op)
{
	const struct nbox_net *net = op->net;
	uint32_t n_nodes = op->n_nodes ? op->n_nodes : 1;
	uint32_t per_node = (op->n_ranks + n_nodes - 1) / n_nodes;
	struct ports p = {
		.n_intra = per_node - 1,
		.n_inter = op->n_ranks - per_node,
		.intra_bw = net->intra_bytes_per_ns,
		.inter_bw = net->inter_bytes_per_ns,
	};

	if (p.n_intra > 0)
		p.alpha_ns = hop_alpha(m, net, 0);
	if (p.n_inter > 0)
		p.alpha_ns = larger(p.alpha_ns, hop_alpha(m, net, 1));
	if (m->bytes_per_ns[0] > 0) { /* one port for all */
		p.n_intra += p.n_inter;
		p.n_inter = 0;
		p.intra_bw = m->bytes_per_ns[0];
	}
	return p;
}

/* @bytes to each of the others, or from each. */
static double exchange_ns(const struct ports *p, double bytes)
{
	return p->alpha_ns +
	       larger(p->n_intra * bytes / p->intra_bw, p->n_inter * bytes / p->inter_bw);
}

static int alltoall_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	struct ports p = ports_of(model, op);
	double bytes = (double)op->bytes, bw;

	if (op->n_ranks <= 1) {
		*ret_ns = 0;
		return 0;
	}
	switch (op->kind) {
	case NBOX_ALLREDUCE:
	case NBOX_BROADCAST:
	case NBOX_REDUCE:
		*ret_ns = 2 * exchange_ns(&p, bytes / op->n_ranks);
		return 0;
	case NBOX_ALLTOALL:
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
	case NBOX_GATHER:
	case NBOX_SCATTER:
		*ret_ns = exchange_ns(&p, bytes);
		return 0;
	case NBOX_SENDRECV:
		bw = p.n_intra > 0 ? p.intra_bw : p.inter_bw;
		if (p.n_inter > 0)
			bw = smaller(bw, p.inter_bw);
		*ret_ns = p.alpha_ns + bytes / bw;
		return 0;
	default:
		return 1;
	}
}

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's", "latency of an exchange"},
	{"bw", "bandwidth", "the cluster's", "bandwidth of a rank's one port"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "alltoall",
	.summary = "closed forms of direct exchange between all pairs (alpha-beta)",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = alltoall_create,
	.destroy = free,
	.op = alltoall_op,
};
