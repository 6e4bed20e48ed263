/* See whole.h. Latency of the pipeline, and the bytes through what carries most of them.
 *
 *   NVLS      25 us + (b + 2 L) / (port x efficiency), b bytes of a GPU: AllReduce
 *             9/8 S x (n-1)/n / (7/8), as 72 GPUs have the bus bandwidth of 8 (GB200: 839 GB/s,
 *             GB300: 842), AllGather and ReduceScatter S; the port is NCCL's figure of it
 *   NVLSTree  25 us + 2 d step' + (S + 2 d L) / bw: the pipeline fills by a loop of all channels'
 *             chunks L a hop. bw is the least of what NICs carry (e bytes leave a domain for each
 *             byte of S: 1 with two domains, 1.5 with three, else 2: an inner node of one tree is a
 *             leaf of the other), of what NVLS gets of a port, and of what a channel of NVLSTree
 *             gets by NCCL's tables. (Its estimate for B200 is 497 GB/s, the measured 718.)
 *   PAT       8 us + d step + S (n-1)/n / NICs of a domain
 *
 * with S bytes, n ranks, r in a domain, N domains, d = ceil(log2 N). A step is NCCL's for a tree
 * over the network, plus the fabric's latency; step' is 8.8 us plus that: 8 bytes take 46.6 us on
 * two nodes of H20 (github.com/NVIDIA/nccl/issues/1244), where NCCL's tables have 20.9 us a step.
 * They have 2.8 us for each rank for PAT, which no network of 512 takes. The NICs have the
 * bandwidth that NCCL's tables leave them, if it is less than theirs. */
#include "whole.h"

#define OVERHEAD_NS 2000 /* of the network, within NCCL's step times */
#define NVLS_STEP_NS 8800

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

static double step_ns(const struct nbox_fabric *f)
{
	double own = tables_default()->hw_us[HW_NET][ALGO_TREE][NBOX_SIMPLE] * 1e3;

	return larger(own - OVERHEAD_NS, 0) + f->net_latency_ns;
}

static double nics_bw(const struct nbox_fabric *f)
{
	double nic = f->nic_payload_bytes_per_ns;

	return f->n_nics * (nic > 0 ? nic : f->nic_bytes_per_ns);
}

/* Of a GPU's port to the switch, when it reduces. */
static double switch_bw(const struct comm *c, const struct nbox_fabric *f)
{
	double link = c->sm_min >= 100 ? 40.1 / 50 : 20.6 / 25;

	return f->gpu_bytes_per_ns * link * (double)tables_nvls_efficiency(tables_card(c->sm_min));
}

/* Bytes at a GPU's port for each byte that NVLS reduces. */
static double reduced(const struct comm *c)
{
	return 9.0 / 7 * (c->most_local - 1) / c->most_local;
}

static double loop_bytes(const struct comm *c, const struct choice *ch)
{
	return (double)ch->n_channels * c->graphs.nvls.n_channels * (double)ch->chunk_bytes;
}

static double nvls_tree_ns(const struct comm *c, const struct nbox_fabric *f,
			   const struct choice *ch, double s)
{
	double n = c->n_ranks, leave = c->n_nodes == 2 ? 1 : c->n_nodes == 3 ? 1.5 : 2;
	double a_channel =
		tables_default()->nvls_tree_bw[tables_card(c->sm_min)][tables_scale(c->n_nodes)];
	double channels = smaller(c->graphs.nvls.n_channels, ch->n_channels);
	double own = a_channel * channels * n / (2 * (n - 1));
	double bw = smaller(smaller(nics_bw(f) / leave, own), switch_bw(c, f) / reduced(c));
	double loop = loop_bytes(c, ch);
	uint32_t hops = 2 * depth(c->n_nodes);

	return hops * (NVLS_STEP_NS + f->net_latency_ns) + (s + hops * smaller(loop, s)) / bw;
}

double whole_ns(const struct comm *c, const struct nbox_fabric *f, uint32_t kind,
		const struct choice *ch, uint64_t bytes)
{
	const struct tables *t = tables_default();
	double s = (double)bytes, inside = s;
	double start_ns = t->hw_us[HW_NVLINK][ALGO_NVLS][NBOX_SIMPLE] * 1e3;
	uint32_t d = depth(c->n_nodes);

	if (kind == NBOX_ALLREDUCE)
		inside *= reduced(c);
	switch (ch->algo) {
	case ALGO_NVLS:
		return start_ns + (inside + 2 * smaller(loop_bytes(c, ch), s)) / switch_bw(c, f);
	case ALGO_NVLS_TREE:
		return start_ns + nvls_tree_ns(c, f, ch, s);
	default: /* PAT */
		return t->base_us[ALGO_PAT][NBOX_SIMPLE] * 1e3 + d * step_ns(f) +
		       s * (c->n_ranks - 1) / c->n_ranks /
			       smaller(nics_bw(f),
				       (double)cost_bus_bw(c, kind, ch->algo, ch->proto));
	}
}
