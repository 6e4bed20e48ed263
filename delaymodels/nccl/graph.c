/* See graph.h. NCCL searches its graphs in the machine's topology: it tries the speeds of a list,
 * fast ones first, and counts for each how many channels of that speed the links hold; the largest
 * product of both wins. Here the links are three kinds: a GPU's port to the switch or to the other
 * GPUs, a NIC, and the PCIe between the two; the counts follow from the loads of each pattern.
 * README.md says on which machines the results are those of NCCL's search.
 *
 *   ring   enters a domain by a NIC and leaves it by the same, if need be over NVLink through the
 *          GPU that it entered by: it loads the port of each GPU. Or it leaves by the NIC of the
 *          last GPU, and the next channel takes the way back: then one port of all stays free
 *   tree   a chain behind the GPU of its NIC, as many as rings; on two nodes its speed inside may
 *          grow up to twice that of the NIC
 *   NVLS   a channel has a GPU at its head, which takes twice its speed, all others once
 *
 * A mesh of NVLinks joins all pairs of four GPUs, or is the cube of eight V100, whose channels are
 * as fast as one link. PCIe machines have what one port carries, less a sixth where an Intel host
 * joins the GPUs. */
#include "graph.h"

#include <math.h>

#define MAX_CHANNELS 64 /* NCCL's, of a communicator */
#define SEARCH_MAX (MAX_CHANNELS / 2)
#define NVLS_HEADS_MAX 32

/* No other network that reaches the GPUs' memory is as slow as EFA; its plug-in tells NCCL of 75
 * us, all others of none. */
#define EFA_NS 10000
#define EFA_TOLD_US 75

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
	int is_inter, has_switch, has_nvlink;
	int shares_nics; /* a NIC is near to two GPUs, so that a ring leaves by it from the second
			  */
	enum path_type distance; /* of a GPU from its NIC */
	float port;              /* of a GPU, each way */
	float stream;            /* most that one channel takes of it */
	float nic, pcie, latency_us;
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

/* Ports of a mesh reach the op's other GPUs only. */
static void set_mesh(const struct nbox_fabric *f, struct machine *m)
{
	/* of the cube, the links that rings over its first GPUs find */
	static const uint32_t cube[] = {0, 0, 1, 2, 4, 2, 2, 4, 6};
	float pair = m->port / 3;

	if (f->sm_min >= 80) {
		m->stream = pair;
		m->port = fminf(m->port, (float)(m->n_gpus - 1) * pair);
	} else {
		m->stream = 20;
		if (m->n_gpus < sizeof(cube) / sizeof(cube[0]))
			m->port = fminf(m->port, 20 * (float)cube[m->n_gpus]);
	}
}

static void machine_make(const struct nbox_fabric *f, uint32_t n_gpus, int is_inter,
			 struct machine *ret)
{
	static const enum path_type types[] = {PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS};
	uint32_t sm = f->sm_min;
	struct machine m = {
		.sm = sm,
		.n_gpus = n_gpus,
		.n_nics = f->n_nics ? f->n_nics : 1,
		.is_inter = is_inter,
		.has_switch = f->intra == NBOX_NVSWITCH,
		.has_nvlink = f->intra != NBOX_PCIE,
		.distance = types[f->has_gdr || f->distance > NBOX_PHB ? f->distance : NBOX_PHB],
		.latency_us = f->has_gdr && f->net_latency_ns >= EFA_NS ? EFA_TOLD_US : 0,
		.nic = (float)f->nic_bytes_per_ns,
		.pcie = pcie_bw(f->pcie_bytes_per_ns, sm),
	};

	m.shares_nics = n_gpus == 1 || n_gpus >= 2 * m.n_nics ||
			(f->distance == NBOX_PXB && sm < 90 && n_gpus % 2 == 0);
	if (m.has_nvlink) {
		m.stream = m.port = nvlink_bw(f);
		if (!m.has_switch && n_gpus > 1)
			set_mesh(f, &m);
	} else {
		m.port = pcie_bw(f->gpu_bytes_per_ns, sm);
		if (f->cpu == NBOX_INTEL && f->distance >= NBOX_PHB)
			m.port = m.port * 5 / 6;
		m.stream = m.port;
	}
	if (sm < 80 && n_gpus == 1) /* what comes in takes an eighth of the way out */
		m.pcie = m.pcie * 8 / 9;
	*ret = m;
}

/* How often @speed fits into @bw; NCCL rounds to 1/1000. */
static uint32_t fits(float bw, float speed)
{
	return (uint32_t)floorf(bw / speed + 0.0005f);
}

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Channels that NICs hold; each goes out and in by one of them. */
static uint32_t nics_hold(const struct machine *m, float speed)
{
	float whole = floorf(speed) >= 1 ? floorf(speed) : speed;
	uint32_t a_nic = fewer(fits(fminf(m->nic, m->pcie), speed), fits(m->nic, whole));

	return fewer(m->n_nics * a_nic, m->n_gpus * fits(m->pcie, speed));
}

static uint32_t rings_held(const struct machine *m, float speed)
{
	float k = (float)m->n_gpus;
	uint32_t n = SEARCH_MAX, nics, there, back;

	if (m->n_gpus > 1 && speed > m->stream)
		return 0;
	there = m->n_gpus > 1 ? fewer(n, fits(m->port, speed)) : n;
	if (!m->is_inter)
		return there;
	nics = nics_hold(m, speed);
	there = fewer(there, nics);
	if (m->n_gpus < 2 || m->n_nics < 2 || m->n_gpus % 2 || !m->has_switch)
		return there;
	back = fewer(fits(m->port * k / (k - 1), speed), nics) & ~1U; /* in pairs, there and back */
	return back > there ? back : there;
}

/* A chain leaves the port of its last GPU free. */
static int trees_fit(const struct machine *m, uint32_t n, float speed)
{
	uint32_t k = m->n_gpus, load = n, held = fits(m->port, speed);

	if (k == 1)
		return 1;
	if (speed > m->stream)
		return 0;
	if (m->is_inter || k == 2)
		load = (n * (k - 1) + k - 1) / k;
	else if (k <= 4 && held * k > n * (k - 1)) /* beyond, NCCL's search finds no other orders */
		load = (n * (k - 1) + k - 1) / k;
	return load <= held;
}

/* A GPU at the head of a channel takes twice its speed from the port, the others once. */
static uint32_t heads_held(const struct machine *m, float speed)
{
	uint32_t most = fewer(m->n_gpus, NVLS_HEADS_MAX), held = fits(m->port, speed);

	held = held > 0 ? held - 1 : 0;
	if (m->is_inter)
		most = fewer(fewer(most, m->n_nics), nics_hold(m, speed));
	return fewer(held, most);
}

static void set_types(const struct machine *m, int is_cross, struct graph *g)
{
	g->intra_type = m->n_gpus == 1 ? PATH_LOC : m->has_nvlink ? PATH_NVLINK : m->distance;
	g->inter_type = m->is_inter ? m->distance : PATH_PIX;
	g->latency_us = m->is_inter ? m->latency_us : 0;
	if (m->is_inter && m->has_nvlink && !m->shares_nics && !is_cross &&
	    g->inter_type < PATH_PXN)
		g->inter_type = PATH_PXN;
}

/* Slow channels stay as they are, fast ones become two, on sm90 and newer if they are few. */
static void twice(const struct machine *m, const float *speeds, struct graph *g)
{
	uint32_t n = fewer(g->n_channels * 2, SEARCH_MAX);

	if (g->intra_bw < 25 || (m->sm > 80 && g->intra_bw < 50 && g->n_channels > 4))
		return;
	g->intra_bw /= (float)((n + g->n_channels - 1) / g->n_channels);
	g->inter_bw = g->intra_bw;
	g->n_channels = n;
	for (const float *s = speeds; *s > g->intra_bw; s++) /* the halves may fit at more */
		if (rings_held(m, *s) >= n) {
			g->intra_bw = g->inter_bw = *s;
			return;
		}
}

static void ring_find(const struct machine *m, struct graph *ret)
{
	const float *speeds = speeds_of(m);
	struct graph g = {0};

	for (const float *s = speeds; *s > 0; s++) {
		uint32_t n = rings_held(m, *s);

		if (g.n_channels && *s / g.inter_bw <= 0.49f)
			break;
		if ((float)n * *s <= (float)g.n_channels * g.intra_bw)
			continue;
		g.n_channels = n;
		g.intra_bw = g.inter_bw = *s;
		if (m->n_gpus > 1 && (float)n * *s >= m->port)
			break;
	}
	set_types(m, (float)g.n_channels * g.intra_bw > m->port, &g);
	g.is_same = m->is_inter ? m->n_gpus == 1 || m->n_nics == 1
				: m->has_switch || m->n_gpus == 2 || !m->has_nvlink;
	if (g.n_channels == 0) {
		g.n_channels = 1;
		g.intra_bw = g.inter_bw = 0.1f;
		g.intra_type = g.inter_type = PATH_SYS;
	}
	twice(m, speeds, &g);
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
	float next;

	if (!m->is_inter) {
		const float *s = speeds;

		while (*s > 0 && !trees_fit(m, g.n_channels, *s))
			s++;
		if (*s > 0)
			g.intra_bw = g.inter_bw = *s;
		g.is_simple_tree = m->sm >= 100 && m->n_gpus > 2 && m->n_gpus <= 4;
	} else {
		set_types(m, 1, &g);
		if (!m->shares_nics &&
		    m->sm < 90) /* the balanced tree's second GPU is far from it */
			g.inter_type = PATH_SYS;
		g.is_simple_tree = m->n_gpus == 1 || (m->sm >= 90 && !m->shares_nics);
		while (g.intra_bw < 2 * g.inter_bw && (m->has_nvlink || m->n_gpus == 1)) {
			next = faster(speeds, g.intra_bw);
			if (next == 0 || !trees_fit(m, g.n_channels, next))
				break;
			g.intra_bw = next;
		}
	}
	*ret = g;
}

static void nvls_find(const struct nbox_fabric *f, const struct machine *m, struct graph *ret)
{
	const float *speeds = speeds_of(m);
	uint32_t all = fewer(m->n_gpus, NVLS_HEADS_MAX);
	struct graph g = {0};
	float next;

	*ret = g;
	if (!m->has_switch || m->sm < 90 || !f->has_nvls || m->n_gpus < 2)
		return;
	set_types(m, 1, &g);
	for (const float *s = speeds; *s > 0; s++) {
		uint32_t n = heads_held(m, *s);

		if (g.n_channels && *s / g.inter_bw <= 0.49f)
			break;
		if (!m->is_inter && n < all)
			continue;
		if (n > g.n_channels || (float)n * *s > (float)g.n_channels * g.inter_bw) {
			g.n_channels = n;
			g.intra_bw = g.inter_bw = *s;
		}
		if (n == all)
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
	ring_find(&m, &ret->ring);
	tree_find(&m, &ret->ring, &ret->tree);
	nvls_find(f, &m, &ret->nvls);
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
