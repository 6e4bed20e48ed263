/* See graph.h. NCCL searches its graphs in the machine's topology: it tries the speeds of a list,
 * fast ones first, and counts for each how many channels of that speed the links hold; the largest
 * product of both wins. Here the links are three kinds: a GPU's port to the switch or to the other
 * GPUs, a NIC, and the PCIe between the two. That gives the search's results on machines whose GPUs
 * and NICs are alike, which are those that it is compared with (README.md).
 *
 *   ring   a channel takes its speed from the port of each GPU, and from one NIC
 *   tree   as many channels as rings; on two nodes its speed inside may grow up to twice
 *   NVLS   a channel has a GPU at its head, which takes twice its speed, all others once
 *
 * A mesh of NVLinks counts as a switch whose channels are no faster than one link. PCIe machines
 * have no more than what one port carries, less a sixth where an Intel host joins the GPUs. */
#include "graph.h"

#include <math.h>

#define MAX_CHANNELS 64 /* NCCL's, of a communicator */
#define SEARCH_MAX (MAX_CHANNELS / 2)
#define NVLS_HEADS_MAX 32

/* Fast first; ends with 0. */
static const float intra_speeds[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 0};
static const float inter_speeds[] = {48, 30, 28, 24, 20, 18,   15,   12,    10,    9,
				     7,  6,  5,  4,  3,  2.4f, 1.2f, 0.24f, 0.12f, 0};
static const float intra_speeds_90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3, 0};
static const float inter_speeds_90[] = {48, 45, 42, 40, 30,   24,   22,    20,    17.5f,
					15, 12, 6,  3,  2.4f, 1.2f, 0.24f, 0.12f, 0};
static const float intra_speeds_100[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18, 0};
static const float inter_speeds_100[] = {96, 48, 45.1f, 42, 40,   30,   24,    22,    20, 17.5f,
					 15, 12, 6,     3,  2.4f, 1.2f, 0.24f, 0.12f, 0};

/* What the channels share, in NCCL's GB/s. */
struct machine {
	uint32_t sm, n_gpus, n_nics;
	int is_inter, has_switch;
	float port;   /* of a GPU, each way */
	float stream; /* most that one channel takes of it */
	float nic, pcie;
};

static const float *speeds_of(const struct machine *m)
{
	if (m->is_inter)
		return m->sm >= 100  ? inter_speeds_100
		       : m->sm >= 90 ? inter_speeds_90
				     : inter_speeds;
	return m->sm >= 100 ? intra_speeds_100 : m->sm >= 90 ? intra_speeds_90 : intra_speeds;
}

/* NCCL's figure of an NVLink, by its raw one. */
static float nvlink_bw(const struct nbox_fabric *f)
{
	double raw = f->gpu_bytes_per_ns;

	return (float)(f->sm_min >= 100  ? raw * 40.1 / 50
		       : f->sm_min >= 90 ? raw * 20.6 / 25
					 : raw * 20 / 25);
}

/* NCCL counts 16 lanes of PCIe 3, 4, 5, 6. Unknown: what such GPUs have. */
static float pcie_bw(double raw, uint32_t sm)
{
	if (raw <= 0)
		return sm >= 90 ? 48 : sm >= 80 ? 24 : 12;
	return raw < 8 ? 6 : raw < 20 ? 12 : raw < 40 ? 24 : raw < 80 ? 48 : 96;
}

static void machine_make(const struct nbox_fabric *f, uint32_t n_gpus, int is_inter,
			 struct machine *ret)
{
	uint32_t sm = f->sm_min;
	struct machine m = {
		.sm = sm,
		.n_gpus = n_gpus,
		.n_nics = f->n_nics ? f->n_nics : 1,
		.is_inter = is_inter,
		.has_switch = f->intra == NBOX_NVSWITCH,
		.nic = (float)f->nic_bytes_per_ns,
		.pcie = pcie_bw(f->pcie_bytes_per_ns, sm),
	};

	if (f->intra == NBOX_PCIE) {
		m.port = pcie_bw(f->gpu_bytes_per_ns, sm);
		if (f->cpu == NBOX_INTEL && f->distance >= NBOX_PHB)
			m.port = m.port * 5 / 6;
		m.stream = m.port;
	} else {
		m.port = nvlink_bw(f);
		m.stream = m.has_switch ? m.port : sm >= 90 ? 20.6f : 20;
	}
	*ret = m;
}

/* How often @speed fits into @bw; NCCL rounds to 1/1000. */
static uint32_t fits(float bw, float speed)
{
	return (uint32_t)floorf(bw / speed + 0.0005f);
}

/* Channels that NICs hold; each goes out and in by one of them. */
static uint32_t nics_hold(const struct machine *m, float speed)
{
	float whole = floorf(speed) >= 1 ? floorf(speed) : speed;
	uint32_t a_nic = fits(m->nic < m->pcie ? m->nic : m->pcie, speed);
	uint32_t b_nic = fits(m->nic, whole), all, gpus;

	all = m->n_nics * (a_nic < b_nic ? a_nic : b_nic);
	gpus = m->n_gpus * fits(m->pcie, speed);
	return all < gpus ? all : gpus;
}

static uint32_t rings_held(const struct machine *m, float intra, float inter)
{
	uint32_t n = SEARCH_MAX, held;

	if (m->n_gpus > 1) {
		if (intra > m->stream)
			return 0;
		held = fits(m->port, intra);
		n = held < n ? held : n;
	}
	if (m->is_inter) {
		held = nics_hold(m, inter);
		n = held < n ? held : n;
	}
	return n;
}

/* A GPU at the head of a channel takes twice its speed from the port, the others once. */
static uint32_t heads_held(const struct machine *m, float intra, float inter)
{
	uint32_t most = m->n_gpus < NVLS_HEADS_MAX ? m->n_gpus : NVLS_HEADS_MAX, held;

	held = fits(m->port, intra);
	held = held > 0 ? held - 1 : 0;
	if (m->is_inter) {
		uint32_t nics = nics_hold(m, inter);

		if (most > m->n_nics)
			most = m->n_nics;
		held = held < nics ? held : nics;
	}
	return held < most ? held : most;
}

static void types_set(const struct nbox_fabric *f, struct graph *g)
{
	static const enum path_type types[] = {PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS};

	g->intra_type = f->intra == NBOX_PCIE ? types[f->distance] : PATH_NVLINK;
	g->inter_type = types[f->distance];
}

/* Where the GPU that a ring leaves is another than the one it enters, it goes back to that GPU's
 * NIC over NVLink. */
static void through_nvlink(const struct nbox_fabric *f, struct graph *g)
{
	if (f->intra != NBOX_PCIE && g->inter_type < PATH_PXN)
		g->inter_type = PATH_PXN;
}

static void ring_find(const struct nbox_fabric *f, const struct machine *m, struct graph *ret)
{
	const float *speeds = speeds_of(m), *s;
	struct graph g = {.is_same = 1};
	uint32_t twice;

	types_set(f, &g);
	for (s = speeds; *s > 0; s++) {
		uint32_t n = rings_held(m, *s, *s);

		if (g.n_channels && *s / g.inter_bw <= 0.49f)
			break;
		if ((float)n * *s <= (float)g.n_channels * g.intra_bw)
			continue;
		g.n_channels = n;
		g.intra_bw = g.inter_bw = *s;
		if ((float)n * *s >= m->port && m->n_gpus > 1)
			break;
	}
	if (g.n_channels == 0) {
		g.n_channels = 1;
		g.intra_bw = g.inter_bw = 0.1f;
	} else if (g.intra_bw >= 25 && !(m->sm > 80 && g.intra_bw < 50 && g.n_channels > 4)) {
		twice = g.n_channels * 2 < SEARCH_MAX ? g.n_channels * 2 : SEARCH_MAX;
		g.intra_bw /= (float)((twice + g.n_channels - 1) / g.n_channels);
		g.inter_bw = g.intra_bw;
		g.n_channels = twice;
		for (s = speeds; *s > g.intra_bw; s++) /* the halves may fit at more */
			if (rings_held(m, *s, *s) >= twice) {
				g.intra_bw = g.inter_bw = *s;
				break;
			}
	}
	*ret = g;
}

/* The list's next faster speed; 0: there is none. */
static float faster(const float *speeds, float than)
{
	float next = 0;

	for (; *speeds > than; speeds++)
		next = *speeds;
	return next;
}

static void tree_find(const struct machine *m, const struct graph *ring, struct graph *ret)
{
	const float *speeds = speeds_of(m);
	struct graph g = *ring;

	while (m->n_gpus > 1 && g.intra_bw < 2 * g.inter_bw) {
		float next = faster(speeds, g.intra_bw);

		if (next == 0 || (m->is_inter == 0 && next > m->port) ||
		    rings_held(m, next, g.inter_bw) < g.n_channels)
			break;
		g.intra_bw = next;
	}
	g.is_simple_tree = m->n_gpus == 1;
	*ret = g;
}

static void nvls_find(const struct nbox_fabric *f, const struct machine *m, struct graph *ret)
{
	const float *speeds = speeds_of(m);
	struct graph g = {0};
	float next;

	*ret = g;
	if (!m->has_switch || m->sm < 90 || !f->has_nvls || m->n_gpus < 2)
		return;
	types_set(f, &g);
	for (const float *s = speeds; *s > 0; s++) {
		uint32_t n = heads_held(m, *s, *s);

		if (g.n_channels && *s / g.inter_bw <= 0.49f)
			break;
		if (!m->is_inter && n < (m->n_gpus < NVLS_HEADS_MAX ? m->n_gpus : NVLS_HEADS_MAX))
			continue;
		if (n > g.n_channels || (float)n * *s > (float)g.n_channels * g.inter_bw) {
			g.n_channels = n;
			g.intra_bw = g.inter_bw = *s;
		}
		if (n == m->n_gpus)
			break;
	}
	while (g.n_channels && g.inter_bw < 2 * g.intra_bw) {
		next = faster(speeds, g.inter_bw);
		if (next == 0 || (m->is_inter && nics_hold(m, next) < g.n_channels))
			break;
		g.inter_bw = next;
	}
	*ret = g;
}

void graphs_find(const struct nbox_fabric *f, uint32_t n_gpus, int is_inter, struct graphs *ret)
{
	struct machine m;

	machine_make(f, n_gpus, is_inter, &m);
	ring_find(f, &m, &ret->ring);
	tree_find(&m, &ret->ring, &ret->tree);
	nvls_find(f, &m, &ret->nvls);
	if (is_inter && n_gpus > 1) {
		through_nvlink(f, &ret->ring);
		through_nvlink(f, &ret->tree);
	}
}

static void weaken(struct graph *g, const struct graph *other)
{
	if (other->n_channels < g->n_channels)
		g->n_channels = other->n_channels;
	if (other->intra_bw < g->intra_bw)
		g->intra_bw = other->intra_bw;
	if (other->inter_bw < g->inter_bw)
		g->inter_bw = other->inter_bw;
	if (other->intra_type > g->intra_type)
		g->intra_type = other->intra_type;
	if (other->inter_type > g->inter_type)
		g->inter_type = other->inter_type;
	g->is_same &= other->is_same;
	g->is_simple_tree |= other->is_simple_tree;
}

void graphs_weaken(struct graphs *g, const struct graphs *other)
{
	weaken(&g->ring, &other->ring);
	weaken(&g->tree, &other->tree);
	weaken(&g->nvls, &other->nvls);
}
