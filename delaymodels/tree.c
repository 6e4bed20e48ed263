/* tree: closed forms of the double binary tree, in the alpha-beta model.
 *
 * The N nodes form two binary trees that carry one half of the data each, such that
 * a node is inner in at most one of them; the r ranks of a node form a chain. A
 * chunk of m = min(chunk, S/2) bytes passes
 *
 *   P = (r-1) (alpha_intra + m/bw_intra) + d alpha_inter + (1 + c (d-1)) m/bw_inter
 *
 * from the leaves to the root, with d = ceil(log2 N): the c = 2 children of an inner
 * node (1 for two nodes) share its port, the root has one child. The rest follows
 * through the busiest port:
 *
 *   AllReduce         2 P + (L - 2 c m) / bw   L = S for two ranks, else 2 S
 *   Broadcast, Reduce   P + (S - c m) / bw
 *   others            no tree: message by message, alpha + bytes * flows / bw
 *
 * with bw the slowest of the hops that there are, c = 1 inside a node. L: in one tree a rank passes
 * half the data up once and down twice, in the other, where it is a leaf, up once. Sources: P.
 * Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
 * scan", Parallel Computing 35(12), 2009; the latency term 2 ((r-1) intra + log2 N inter) is also
 * the one of NCCL's own model. */
#include <stdbool.h>

#include "alpha-beta.h"

static int tree_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)next;
	return hops_create(host, kv, n_kv, UINT64_C(512) << 10, ret_model);
}

/* ceil(log2(n)) */
static uint32_t depth(uint32_t n)
{
	uint32_t d = 0;

	while (d < 32 && (UINT64_C(1) << d) < n)
		d++;
	return d;
}

static int tree_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	const struct hops *m = model;
	uint32_t n_nodes = op->n_nodes ? op->n_nodes : 1;
	uint32_t per_node = (op->n_ranks + n_nodes - 1) / n_nodes, up = depth(n_nodes);
	uint32_t children = n_nodes > 2 ? 2 : 1; /* that share a port */
	double intra_bw = hop_bw(m, op->net, 0), inter_bw = hop_bw(m, op->net, 1), bw;
	double bytes = (double)op->bytes, chunk = bytes / 2, pass, passed, load;
	bool is_intra;

	if (op->n_ranks <= 1) {
		*ret_ns = 0;
		return 0;
	}
	if (chunk > (double)m->chunk_bytes)
		chunk = (double)m->chunk_bytes;
	is_intra = per_node > 1 && (up == 0 || intra_bw < inter_bw);
	bw = is_intra ? intra_bw : inter_bw;
	passed = is_intra ? chunk : children * chunk; /* of the busiest port's load */
	pass = (per_node - 1) * (hop_alpha(m, op->net, 0) + chunk / intra_bw) +
	       up * hop_alpha(m, op->net, 1) +
	       (up ? 1 + children * (up - 1) : 0) * chunk / inter_bw;
	switch (op->kind) {
	case NBOX_ALLREDUCE:
		load = op->n_ranks == 2 ? bytes : 2 * bytes;
		*ret_ns = 2 * pass + (load - 2 * passed) / bw;
		return 0;
	case NBOX_BROADCAST:
	case NBOX_REDUCE:
		*ret_ns = pass + (bytes - passed) / bw;
		return 0;
	default:
		return 1;
	}
}

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's", "latency of a hop"},
	{"bw", "bandwidth", "the cluster's", "bandwidth of a hop"},
	{"chunk", "bytes", "512K", "the trees are pipelined in chunks of this size"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "tree",        .summary = "closed forms of the double binary tree (alpha-beta)",
	.flags = NBOX_UNIFORM, .params = params,
	.create = tree_create, .destroy = free,
	.op = tree_op,         .message = hops_message,
};
