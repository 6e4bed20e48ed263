/* See machine.h. */
#include "fabric/read/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	uint32_t sm;
	const char *name;
	double nvlink; /* GB/s of a link */
} cards[] = {
	{60, "P100", 20}, {70, "V100", 25},  {80, "A100", 25},  {86, "GPU", 14.0625}, /* A40 */
	{90, "H100", 25}, {100, "B200", 50}, {103, "B300", 50},
};

const char *machine_gpu_name(uint32_t sm)
{
	for (size_t i = 0; i < ARRAY_SIZE(cards); i++)
		if (cards[i].sm == sm)
			return cards[i].name;
	return "GPU";
}

double machine_nvlink_rate(uint32_t sm)
{
	double rate = 25;

	for (size_t i = 0; i < ARRAY_SIZE(cards); i++)
		if (cards[i].sm <= sm)
			rate = cards[i].nvlink;
	return rate;
}

double machine_pcie_rate(double gigatransfers, uint32_t lanes)
{
	double coded = gigatransfers > 6 ? 128.0 / 130 : 8.0 / 10; /* from PCIe 3 on; before */

	return gigatransfers > 0 && gigatransfers < 1000 && lanes <= 32
		       ? gigatransfers * coded * (lanes ? lanes : 16) / 8
		       : 0;
}

uint32_t machine_bus(const char *text)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return 0;
	return domain << 16 | (bus & 0xff) << 8 | (slot & 0x1f) << 3 | (function & 7);
}

/* Linux's driver has 0xefa0 (p3dn), 0xefa1 (p4d), 0xefa2 and on. */
bool machine_is_efa(unsigned long vendor, unsigned long device, enum fabric_nic *ret_kind)
{
	if (vendor != 0x1d0f || device < 0xefa0)
		return false;
	*ret_kind = device <= 0xefa1 ? FABRIC_EFA : FABRIC_EFA2;
	return true;
}

static enum fabric_distance distance(const struct machine *m, const struct machine_place *a,
				     const struct machine_place *b)
{
	uint32_t n = 0;

	while (n < a->depth && n < b->depth && a->path[n] == b->path[n])
		n++;
	if (n == 0)
		return FABRIC_SYS;
	if (n == 1)
		return FABRIC_PHB;
	return a->depth - n <= m->bridges_of_a_switch && b->depth - n <= m->bridges_of_a_switch
		       ? FABRIC_PIX
		       : FABRIC_PXB;
}

struct chosen {
	uint32_t gpu; /* in the order of their numbers */
	enum fabric_distance distance;
	double bytes_per_ns;
	enum fabric_nic kind;
	bool has_gdr;
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct machine_gpu *)a)->number;
	uint32_t y = ((const struct machine_gpu *)b)->number;

	return (x > y) - (x < y);
}

static int by_gpu(const void *a, const void *b)
{
	uint32_t x = ((const struct chosen *)a)->gpu, y = ((const struct chosen *)b)->gpu;

	return (x > y) - (x < y);
}

/* Is there a GPU to which none of the fastest NICs is nearer? */
static bool is_preferred(const struct machine *m, const struct machine_nic *nic)
{
	for (uint32_t g = 0; g < m->n_gpus; g++) {
		const struct machine_place *gpu = &m->gpus[g].place;
		enum fabric_distance d = distance(m, gpu, &nic->place);
		uint32_t i = 0;

		while (i < m->n_nics && (m->nics[i].bytes_per_ns < nic->bytes_per_ns ||
					 distance(m, gpu, &m->nics[i].place) >= d))
			i++;
		if (i == m->n_nics)
			return true;
	}
	return false;
}

/* The nearest GPU; of several equally near that with the fewest NICs. */
static void choose(const struct machine *m, const struct machine_gpu *gpus,
		   const struct machine_nic *nic, uint32_t *n_taken, struct chosen *ret)
{
	struct chosen best = {.distance = FABRIC_SYS + 1,
			      .bytes_per_ns = nic->bytes_per_ns,
			      .kind = nic->kind,
			      .has_gdr = nic->has_gdr};

	for (uint32_t i = 0; i < m->n_gpus; i++) {
		enum fabric_distance d = distance(m, &gpus[i].place, &nic->place);

		if (d < best.distance || (d == best.distance && n_taken[i] < n_taken[best.gpu])) {
			best.distance = d;
			best.gpu = i;
		}
	}
	n_taken[best.gpu]++;
	*ret = best;
}

/* NICs of one GPU as one. */
static uint32_t merge(struct chosen *nics, uint32_t n)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < n; i++) {
		if (nics[i].gpu == nics[last].gpu)
			nics[last].bytes_per_ns += nics[i].bytes_per_ns;
		else
			nics[++last] = nics[i];
	}
	return n ? last + 1 : 0;
}

static int add_nics(const struct machine *m, const struct machine_gpu *gpus, struct fabric_class *c,
		    struct err *err)
{
	struct chosen nics[MACHINE_DEVICES_MAX];
	uint32_t n_taken[MACHINE_DEVICES_MAX] = {0}, n = 0;
	double fastest = 0;

	for (uint32_t i = 0; i < m->n_nics; i++)
		if (m->nics[i].bytes_per_ns > fastest)
			fastest = m->nics[i].bytes_per_ns;
	for (uint32_t i = 0; i < m->n_nics; i++)
		if (m->nics[i].bytes_per_ns == fastest && is_preferred(m, &m->nics[i]))
			choose(m, gpus, &m->nics[i], n_taken, &nics[n++]);
	qsort(nics, n, sizeof(*nics), by_gpu);
	/* as their plug-in does; others so that they are few enough */
	if (n > FABRIC_NICS_MAX || (n && nics[0].kind == FABRIC_EFA2))
		n = merge(nics, n);
	if (n > FABRIC_NICS_MAX)
		return err_set(err, EINVAL, "%u GPUs have NICs of their own; at most %u", n,
			       FABRIC_NICS_MAX);
	c->n_nics = n;
	for (uint32_t i = 0; i < n; i++) {
		c->nic_gpu[i] = nics[i].gpu;
		c->nic = nics[i].kind;
		c->distance = nics[i].distance > c->distance ? nics[i].distance : c->distance;
		c->has_gdr = (i == 0 || c->has_gdr) && nics[i].has_gdr;
		if (i == 0 || nics[i].bytes_per_ns < c->nic_bytes_per_ns)
			c->nic_bytes_per_ns = nics[i].bytes_per_ns;
	}
	return 0;
}

static bool has_link(const struct machine_gpu *a, const struct machine_gpu *b)
{
	for (uint32_t i = 0; i < a->n_far_ends; i++)
		if (a->far_ends[i] == b->bus)
			return true;
	return false;
}

/* Do links from GPU to GPU reach all of them? Bridges join pairs only. */
static bool is_mesh(const struct machine_gpu *gpus, uint32_t n)
{
	uint32_t found[MACHINE_DEVICES_MAX] = {0}, n_found = 1;
	bool is_found[MACHINE_DEVICES_MAX] = {true};

	for (uint32_t i = 0; i < n_found; i++)
		for (uint32_t k = 0; k < n; k++) {
			if (!gpus[found[i]].n_far_ends) /* what has links of its own has a mesh */
				return true;
			if (is_found[k] || !has_link(&gpus[found[i]], &gpus[k]))
				continue;
			is_found[k] = true;
			found[n_found++] = k;
		}
	return n_found == n;
}

/* A figure that all GPUs have at least; GPUs that do not say it do not count. */
static double least(double a, double b)
{
	return a <= 0 ? b : b <= 0 || a < b ? a : b;
}

int machine_class(const struct machine *m, const char *name, struct fabric_class *ret,
		  struct err *err)
{
	struct fabric_class c = {.domain_nodes = m->n_hosts > 1 ? m->n_hosts : 1,
				 .cpu = m->cpu,
				 .n_gpus = m->n_gpus,
				 .distance = FABRIC_PIX};
	struct machine_gpu gpus[MACHINE_DEVICES_MAX];
	bool has_switch = true, has_nvlink = true, has_gdr = true;
	double pcie = 0;
	int r;

	if (!m->n_gpus)
		return err_set(err, ENODEV, "no GPU here: take another --preset or --fabric");
	memcpy(gpus, m->gpus, m->n_gpus * sizeof(*gpus));
	qsort(gpus, m->n_gpus, sizeof(*gpus), by_number);
	for (uint32_t i = 0; i < m->n_gpus; i++) {
		const struct machine_gpu *g = &gpus[i];

		has_switch = has_switch && g->has_switch;
		has_nvlink = has_nvlink && g->nvlink_bytes_per_ns > 0;
		has_gdr = has_gdr && g->has_gdr;
		c.gpu_bytes_per_ns = least(c.gpu_bytes_per_ns, g->nvlink_bytes_per_ns);
		pcie = least(pcie, g->pcie_bytes_per_ns);
		c.sm = i == 0 || g->sm < c.sm ? g->sm : c.sm;
	}
	has_nvlink = has_nvlink && (has_switch || is_mesh(gpus, m->n_gpus));
	if (pcie <= 0) /* what such GPUs have */
		pcie = machine_pcie_rate(c.sm >= 90 ? 32 : c.sm >= 80 ? 16 : 8, 16);
	c.intra = !has_nvlink ? FABRIC_PCIE : has_switch ? FABRIC_NVSWITCH : FABRIC_NVLINK;
	c.has_nvls = c.intra == FABRIC_NVSWITCH && c.sm >= 90;
	c.pcie_bytes_per_ns = pcie;
	if (has_nvlink)
		c.gpu_latency_ns = fabric_gpu_latency(c.sm, has_switch);
	else
		c.gpu_bytes_per_ns = pcie;
	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.gpu, sizeof(c.gpu), "%s", gpus[0].name ? gpus[0].name : machine_gpu_name(c.sm));
	r = add_nics(m, gpus, &c, err);
	c.has_gdr = c.has_gdr && has_gdr;
	if (r == 0)
		*ret = c;
	return r;
}
