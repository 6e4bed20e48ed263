/* See whole.h. Latency of the pipeline, and the bytes through what carries most of them.
 *
 *   NVLS      25 us + in bytes / (port x efficiency), in bytes of a GPU: AllReduce S (1 + 1/n),
 *             AllGather and ReduceScatter S; the port is NCCL's figure of it
 *   NVLSTree  25 us + 2 d step + max(2 S / NICs of a domain, S (1 + 1/r) / port x efficiency)
 *   PAT       8 us + d step + S (n-1)/n / NICs of a domain
 *
 * with S bytes, n ranks, r in a domain, N domains, d = ceil(log2 N). A step is NCCL's for a tree
 * over the network, plus the fabric's latency. NCCL's own model differs in two things: it has 20.9
 * us a step of NVLSTree, and for PAT 2.8 us for each rank, which no network of 512 takes. The NICs
 * have the bandwidth that NCCL's tables leave them, if it is less than theirs. */
#include "whole.h"

#define OVERHEAD_NS 2000 /* of the network, within NCCL's step times */

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* ceil(log2(n)) */
static uint32_t depth(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

static double step_ns(const struct comm *c, const struct nbox_fabric *f)
{
	double own = c->setting->tables->hw_us[HW_NET][ALGO_TREE][NBOX_SIMPLE] * 1e3;

	return larger(own - OVERHEAD_NS, 0) + f->net_latency_ns;
}

/* Of all NICs of a domain that the algorithm's channels reach. */
static double nics_bw(const struct comm *c, const struct nbox_fabric *f, uint32_t kind,
		      uint32_t algo)
{
	double nics = f->n_nics * f->nic_bytes_per_ns;
	double own = (double)cost_bus_bw(c, kind, algo, NBOX_SIMPLE);

	return smaller(nics, own);
}

/* Of a GPU's port to the switch, when it reduces. */
static double switch_bw(const struct comm *c, const struct nbox_fabric *f)
{
	double link = c->sm_min >= 100 ? 40.1 / 50 : 20.6 / 25;

	return f->gpu_bytes_per_ns * link * (double)tables_nvls_efficiency(tables_card(c->sm_min));
}

double whole_ns(const struct comm *c, const struct nbox_fabric *f, uint32_t kind,
		const struct choice *ch, uint64_t bytes)
{
	const struct tables *t = c->setting->tables;
	double s = (double)bytes, local = c->most_local, inside = s / switch_bw(c, f);
	double start_ns = t->hw_us[HW_NVLINK][ALGO_NVLS][NBOX_SIMPLE] * 1e3;
	uint32_t d = depth(c->n_nodes);

	if (kind == NBOX_ALLREDUCE)
		inside *= 1 + 1 / local;
	switch (ch->algo) {
	case ALGO_NVLS:
		return start_ns + inside;
	case ALGO_NVLS_TREE:
		return start_ns + 2 * d * step_ns(c, f) +
		       larger(inside, 2 * s / nics_bw(c, f, kind, ch->algo));
	default: /* PAT */
		return t->base_us[ALGO_PAT][NBOX_SIMPLE] * 1e3 + d * step_ns(c, f) +
		       s * (c->n_ranks - 1) / c->n_ranks / nics_bw(c, f, kind, ch->algo);
	}
}
