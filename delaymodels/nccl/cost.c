/* See cost.h. A time is latency + bytes / bandwidth. The bandwidth is that of a graph's channels,
 * less what the protocol, the GPU and the algorithm take of it; the latency is a base, and steps
 * inside and between nodes. The arithmetic is NCCL's, in float where NCCL has float, so that near
 * ties fall as NCCL's do. */
#include "cost.h"

static float least(float a, float b)
{
	return a < b ? a : b;
}

static float largest(float a, float b)
{
	return a > b ? a : b;
}

static uint32_t floor_log2(uint32_t n)
{
	return 31 - (uint32_t)__builtin_clz(n);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* --- the communicator --------------------------------------------------------- */

void comm_set_channels(struct comm *c)
{
	const struct setting *s = c->setting;
	struct graphs *g = &c->graphs;
	uint32_t n = g->ring.n_channels;

	if (g->tree.n_channels < n)
		n = g->tree.n_channels;
	g->ring.n_channels = g->tree.n_channels = n;
	n *= 2; /* each ring and tree a second time, the tree as the other half of the double tree
		 */
	if (c->sm_min >= 90 && c->n_nodes > 1 && g->ring.intra_bw > 45 && n < 16)
		n *= 2;
	n = smaller(n, smaller(s->max_channels, s->max_ctas));
	c->n_channels = larger(n, larger(s->min_channels, s->min_ctas));
	n = c->sm_max >= 100 ? (c->n_nodes > 1 ? 32 : 24) : 16;
	c->n_nvls_channels = larger(s->min_ctas, smaller(s->max_ctas, n));
}

void comm_make(const struct setting *s, const struct nbox_fabric *f, uint32_t n_ranks,
	       struct comm *ret)
{
	uint32_t most = f->most_ranks_per_domain, others = most * (f->n_domains - 1);
	struct comm c = {
		.setting = s,
		.n_ranks = n_ranks,
		.n_nodes = f->n_domains,
		.most_local = most,
		.least_local = f->ranks_per_domain ? f->ranks_per_domain
			       : n_ranks > others  ? n_ranks - others
						   : 1,
		.sm_min = f->sm_min,
		.sm_max = f->sm_max,
		.cpu = f->cpu,
		.has_no_order = f->has_no_order && f->n_domains > 1,
		.has_nvls = f->has_nvls && s->has_nvls != ALLOWED_NO && f->sm_min >= 90,
	};

	c.n_nvlinks = (uint32_t)(f->gpu_bytes_per_ns / (c.sm_min >= 100 ? 50 : 25));
	if (f->intra ==
	    NBOX_NVLINK) /* each with three others; a V100's cube has some with one link */
		c.n_nvlinks = c.sm_min >= 80 ? c.n_nvlinks / 3 : 1;
	c.n_nvlinks = c.n_nvlinks ? c.n_nvlinks : 1;
	graphs_find(f, most, c.n_nodes > 1, &c.graphs);
	if (c.least_local < most) {
		struct graphs weak;

		graphs_find(f, c.least_local, 1, &weak);
		graphs_weaken(&c.graphs, &weak);
	}
	comm_set_channels(&c);
	*ret = c;
}

static const struct graph *graph_of(const struct comm *c, uint32_t algo)
{
	switch (algo) {
	case ALGO_TREE:
	case ALGO_PAT:
		return &c->graphs.tree;
	case ALGO_NVLS:
	case ALGO_NVLS_TREE:
		return &c->graphs.nvls;
	default:
		return &c->graphs.ring;
	}
}

/* --- bandwidth ----------------------------------------------------------------- */

/* Of one channel of NVLS or NVLSTree. */
static float nvls_channel_bw(const struct comm *c, const struct graph *g, uint32_t kind,
			     uint32_t algo)
{
	const struct tables *t = c->setting->tables;
	uint32_t card = tables_card(c->sm_min);
	float n = (float)g->n_channels, ppn = (float)c->n_ranks / (float)c->n_nodes;
	float intra = g->intra_bw, inter = g->inter_bw;

	if (t->has_old_nvls) {
		if (algo == ALGO_NVLS_TREE)
			return least(intra, c->n_nodes <= 2 ? inter : inter / 2);
		return kind == NBOX_ALLREDUCE || t->has_old_rings
			       ? least(intra, inter)
			       : least(intra * (ppn - 1) / ppn, inter * 0.9f);
	}
	if (g->n_channels < 2)
		return 0;
	intra = intra * tables_nvls_efficiency(card) * (n - 1) / n;
	if (kind == NBOX_ALLREDUCE)
		intra *= 2;
	else
		intra *= (ppn - 1) / ppn;
	if (algo == ALGO_NVLS)
		return least(intra, inter);
	if (c->n_nodes <= 2)
		inter *= 2;
	return least(least(intra, inter), (float)t->nvls_tree_bw[card][tables_scale(c->n_nodes)]);
}

/* Of the tree, from what its channels have; every step rounds to float, as in NCCL. */
static float tree_bus_bw(const struct comm *c, float bus, uint32_t kind, uint32_t proto, double ll)
{
	const struct tables *t = c->setting->tables;
	uint32_t card = tables_card(c->sm_min), scale = tables_scale(c->n_nodes);
	double n = c->graphs.tree.n_channels, kept, cap;

	if (kind == NBOX_ALLREDUCE) {
		kept = bus * .92;
		cap = n * t->tree_bw[card][scale];
		bus = (float)(kept < cap ? kept : cap);
	}
	if (proto == NBOX_LL) {
		kept = bus * 1.0 / 3.8;
		bus = (float)(kept < ll ? kept : ll);
	}
	if (proto == NBOX_LL128) {
		kept = bus * (c->n_nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0);
		cap = n * t->tree_ll128_bw[card][scale];
		bus = (float)(kept < cap ? kept : cap);
	}
	if (c->graphs.tree.is_simple_tree)
		bus = (float)(bus * .85);
	return bus;
}

static float ring_bus_bw(const struct comm *c, float bus, uint32_t proto, double ll)
{
	const struct tables *t = c->setting->tables;
	double kept, cap;

	if (proto == NBOX_LL) {
		kept = bus * .5;
		return (float)(kept < ll ? kept : ll);
	}
	if (proto == NBOX_LL128) {
		kept = bus * (t->has_old_rings && c->n_ranks < 2 * c->n_nodes ? 0.7 : 0.92);
		cap = c->graphs.ring.n_channels *
		      t->ring_ll128_bw[tables_card(c->sm_min)][tables_scale(c->n_nodes)];
		return (float)(kept < cap ? kept : cap);
	}
	return bus;
}

static uint32_t ring_steps(const struct comm *c, uint32_t kind)
{
	return kind == NBOX_ALLREDUCE                                 ? 2 * (c->n_ranks - 1)
	       : kind == NBOX_ALLGATHER || kind == NBOX_REDUCESCATTER ? c->n_ranks - 1
								      : c->n_ranks;
}

float cost_bus_bw(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto)
{
	const struct graph *g = graph_of(c, algo);
	/* the limit of LL is the GPU's on one node, the CPU's on several */
	uint32_t card = c->n_nodes == 1 ? tables_card(c->sm_min) : c->cpu == NBOX_AMD;
	double ll = c->setting->tables->ll_bw[card][tables_scale(c->n_nodes)];
	float bw = c->n_nodes <= 2 ? g->intra_bw : g->inter_bw, bus;

	if (algo == ALGO_NVLS || algo == ALGO_NVLS_TREE)
		bw = nvls_channel_bw(c, g, kind, algo);
	bus = (float)g->n_channels * bw;
	if (algo == ALGO_RING)
		return ring_bus_bw(c, bus, proto, ll);
	if (algo == ALGO_TREE)
		return tree_bus_bw(c, bus, kind, proto, ll);
	return algo == ALGO_PAT ? (float)(bus * .75) : bus;
}

static float find_bw(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto)
{
	float bus = cost_bus_bw(c, kind, algo, proto), ratio = 1;

	if (algo != ALGO_RING && (kind == NBOX_ALLGATHER || kind == NBOX_REDUCESCATTER) &&
	    !c->setting->tables->has_old_rings)
		return bus;
	if (algo == ALGO_RING ||
	    (!c->setting->tables->has_old_nvls && (algo == ALGO_NVLS || algo == ALGO_NVLS_TREE)))
		ratio = (float)(ratio * (1.0 * c->n_ranks) / ring_steps(c, kind));
	else if (algo == ALGO_NVLS || algo == ALGO_NVLS_TREE)
		ratio = (float)(ratio * (5.0 / 6.0));
	else
		ratio = (float)(ratio * .5);
	return bus * ratio;
}

/* --- latency ------------------------------------------------------------------- */

static float ring_latency(const struct comm *c, uint32_t kind, uint32_t proto, float intra,
			  float inter, enum hw hw)
{
	const struct tables *t = c->setting->tables;
	float us = (float)t->base_us[ALGO_RING][proto], overhead = 0;
	uint32_t steps = ring_steps(c, kind), between;

	if (kind == NBOX_REDUCE || kind == NBOX_BROADCAST) {
		float step = (float)t->hw_us[hw][ALGO_RING][proto];

		if (c->graphs.ring.is_same)
			return us + step;
		if (proto == NBOX_SIMPLE)
			step = (float)t->hw_us[hw][ALGO_TREE][proto];
		return us + (float)steps * step;
	}
	if (c->n_nodes > 1) {
		overhead = c->cpu == NBOX_AMD ? 2 : 1;
		if (proto == NBOX_SIMPLE)
			overhead *= 3;
	}
	intra = largest(intra, overhead);
	between = c->n_nodes == 1 ? 0 : (kind == NBOX_ALLREDUCE ? 2 : 1) * (c->n_nodes - 1);
	if (t->has_old_rings && kind == NBOX_ALLREDUCE && c->n_nodes > 1)
		between = 2 * c->n_nodes;
	/* signed: the old rule counts more steps between two nodes than there are */
	return us + ((float)((int32_t)steps - (int32_t)between) * intra + (float)between * inter);
}

static float find_latency(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto)
{
	const struct tables *t = c->setting->tables;
	const struct graph *g = graph_of(c, algo);
	enum hw in = g->intra_type == PATH_NVLINK ? HW_NVLINK : HW_PCI;
	float us = (float)t->base_us[algo][proto], intra = (float)t->hw_us[in][algo][proto], inter;
	uint32_t log = floor_log2(c->n_nodes), local = c->n_ranks / c->n_nodes;

	/* a rank a node cannot hide the network's latency */
	inter = (float)t->hw_us[HW_NET]
			       [c->n_ranks == c->n_nodes && !t->has_old_rings ? ALGO_TREE : algo]
			       [proto];
	inter += g->latency_us;
	if (proto == NBOX_SIMPLE) /* and the flush */
		inter += g->latency_us;
	switch (algo) {
	case ALGO_RING:
		return ring_latency(c, kind, proto, intra, inter, c->n_nodes == 1 ? in : HW_NET);
	case ALGO_TREE:
		return kind == NBOX_ALLREDUCE
			       ? us + 2 * ((float)(local - 1) * intra + (float)log * inter)
			       : us;
	case ALGO_NVLS:
		return c->n_nodes > 1 ? intra + inter : intra;
	case ALGO_NVLS_TREE:
		return us + (intra + (float)(2 * log) * inter);
	case ALGO_PAT: /* in double, as in NCCL */
		return (float)(us + (log * (inter / 3.5) + c->n_ranks * 2.8));
	default:
		return us;
	}
}

/* --- what is possible ----------------------------------------------------------- */

int cost_exists(uint32_t kind, uint32_t algo, uint32_t proto)
{
	switch (kind) {
	case NBOX_ALLREDUCE:
		if (algo == ALGO_PAT)
			return 0;
		break;
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
		if (algo == ALGO_TREE || algo == ALGO_COLLNET_CHAIN || algo == ALGO_NVLS_TREE)
			return 0;
		break;
	default:
		if (algo != ALGO_RING)
			return 0;
	}
	return proto == NBOX_SIMPLE || algo == ALGO_TREE || algo == ALGO_RING;
}

static const char *nvls_why_not(const struct comm *c, uint32_t kind, uint32_t algo)
{
	if (!c->has_nvls || c->graphs.nvls.n_channels == 0)
		return "NVLS needs two GPUs or more at an NVSwitch that reduces (sm90)";
	if (algo == ALGO_NVLS && c->n_nodes > 1)
		return "NVLS over several nodes needs CollNet";
	if (algo == ALGO_NVLS_TREE && c->n_nodes == 1)
		return "NVLSTree is for several nodes";
	if ((kind != NBOX_ALLREDUCE || algo == ALGO_NVLS_TREE) && c->most_local > 32)
		return algo == ALGO_NVLS_TREE ? "NVLSTree joins domains of at most 32 GPUs"
					      : "NVLS gathers and scatters among at most 32 GPUs";
	return NULL;
}

static const char *pat_why_not(const struct comm *c)
{
	int has_pat = c->setting->has_pat;

	if (c->setting->tables->has_old_rings)
		return "this version of NCCL has no PAT";
	return has_pat == ALLOWED_BY_RULE && c->n_nodes != c->n_ranks ? "PAT needs one rank a node"
								      : NULL;
}

/* Where neither the user nor the environment says something of LL128. */
static const char *ll128_why_not(const struct comm *c, const struct graph *g)
{
	if (g->inter_type > (c->sm_min >= 90 ? PATH_PXN : PATH_PXB))
		return "LL128 needs NICs nearer to the GPUs";
	if (g->intra_type > PATH_NVB)
		return "LL128 needs NVLink inside the node";
	if (c->sm_min != c->sm_max)
		return "LL128 needs GPUs of one kind";
	if (c->setting->tables->has_old_rings && c->sm_min != 70 && c->sm_min != 80 &&
	    c->sm_min != 90)
		return "this version of NCCL has LL128 on V100, A100 and H100";
	return c->sm_min < 70 ? "LL128 needs sm70" : NULL;
}

const char *cost_forbidden(const struct setting *s, uint32_t kind, uint32_t algo, uint32_t proto)
{
	if (!s->algo[kind][algo])
		return "not among NCCL_ALGO";
	if (!s->proto[kind][proto])
		return "not among NCCL_PROTO";
	if ((algo == ALGO_NVLS || algo == ALGO_NVLS_TREE) && s->has_nvls == ALLOWED_NO)
		return "NCCL_NVLS_ENABLE=0";
	return algo == ALGO_PAT && s->has_pat == ALLOWED_NO ? "NCCL_PAT_ENABLE=0" : NULL;
}

static const char *find_why_not(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto)
{
	const struct setting *s = c->setting;
	const char *why = cost_forbidden(s, kind, algo, proto);

	if (why)
		return why;
	if (proto != NBOX_SIMPLE && c->has_no_order)
		return "this network's messages do not arrive in order";
	if (algo == ALGO_COLLNET_CHAIN || algo == ALGO_COLLNET_DIRECT)
		return "CollNet is off, or the network does not reduce";
	if (algo == ALGO_NVLS || algo == ALGO_NVLS_TREE)
		why = nvls_why_not(c, kind, algo);
	else if (algo == ALGO_PAT)
		why = pat_why_not(c);
	else if (proto == NBOX_LL128 && s->proto[kind][proto] == ALLOWED_BY_RULE)
		why = ll128_why_not(c, graph_of(c, algo));
	return why;
}

void cost_find(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto, struct cost *ret)
{
	const char *why = find_why_not(c, kind, algo, proto);

	*ret = (struct cost){.why_not = why};
	if (why)
		return;
	ret->bw = find_bw(c, kind, algo, proto);
	ret->latency_us = find_latency(c, kind, algo, proto);
	if (ret->bw <= 0)
		ret->why_not = "NCCL's tables give it no bandwidth here";
}

double cost_latencies(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		      uint64_t bytes, uint64_t n_channels)
{
	int is_plateau = algo == ALGO_RING && proto == NBOX_SIMPLE && c->n_nodes > 1 &&
			 kind == NBOX_ALLREDUCE && bytes / (n_channels * c->n_ranks) >= 64;

	return is_plateau ? c->sm_min < 80 ? 1.9 : 1.4 : 1;
}

float cost_share(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto, uint64_t bytes)
{
	int is_tree = algo == ALGO_TREE ||
		      (algo == ALGO_NVLS_TREE && c->setting->tables->has_nvls_tree_share &&
		       c->sm_min >= 100 && (c->cpu == NBOX_INTEL || c->cpu == NBOX_AMD));

	return is_tree && kind == NBOX_ALLREDUCE
		       ? tables_tree_share(proto, bytes, algo == ALGO_TREE ? 23 : 24)
		       : 1;
}

float cost_us(const struct comm *c, const struct cost *cost, uint32_t kind, uint32_t algo,
	      uint32_t proto, uint64_t bytes)
{
	float bw, us;

	if (cost->why_not)
		return -1;
	bw = cost->bw * cost_share(c, kind, algo, proto, bytes);
	us = (float)(cost->latency_us * cost_latencies(c, kind, algo, proto, bytes, c->n_channels));
	return us + (float)bytes / (1000 * bw);
}
