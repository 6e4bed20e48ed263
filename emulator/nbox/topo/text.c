/* The fabric as a text. */
#include <math.h>

#include "base/units.h"
#include "fabric/leaf.h"
#include "nbox/topo/bounds.h"
#include "nbox/topo/topo.h"
#include "nbox/topo/words.h"

#define CHANGES_SHOWN 8

static const char *s_of(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void line(FILE *to, const char *left)
{
	fprintf(to, "%-13s ", left);
}

/* "450 GB/s each way, of which NCCL gets 369 GB/s" */
static void print_raw(double raw, double efficiency, FILE *to)
{
	char a[32], b[32];

	fprintf(to, "%s each way, of which NCCL gets %s", topo_rate(raw, a, sizeof(a)),
		topo_rate(raw * efficiency, b, sizeof(b)));
}

static void print_class(const struct fabric *f, uint32_t i, FILE *to)
{
	const struct fabric_class *c = &f->classes[i];
	uint32_t n_used;
	char text[64];

	line(to, "class");
	fprintf(to, "%s:", c->name);
	for (size_t k = 0; f->n_classes > 1 && k < f->n_nodes_runs; k++)
		if (f->nodes[k].class == i)
			fprintf(to, " %s:",
				topo_nodes(f->nodes[k].first, f->nodes[k].n, text, sizeof(text)));
	fprintf(to, " %u x %s (sm %u) on %s", c->n_gpus, c->gpu[0] ? c->gpu : "GPU", c->sm,
		topo_intra(c));
	if (f->gpus_per_node < c->n_gpus)
		fprintf(to, ", %u of them used", f->gpus_per_node);
	if (c->domain_nodes > 1)
		fprintf(to, " over %u nodes", c->domain_nodes);
	fprintf(to, "; %s\n", topo_cpu(c->cpu));
	line(to, "  GPU's port");
	print_raw(c->gpu_bytes_per_ns, fabric_gpu_efficiency(c), to);
	fprintf(to, "; %s from port to port\n",
		units_print_time(c->gpu_latency_ns, text, sizeof(text)));
	if (c->intra != FABRIC_PCIE && c->pcie_bytes_per_ns > 0) {
		line(to, "  PCIe");
		print_raw(c->pcie_bytes_per_ns, fabric_efficiency(FABRIC_MEDIUM_PCIE, c->nic), to);
		fputc('\n', to);
	}
	if (!c->n_nics)
		return;
	line(to, "  NICs");
	n_used = (uint32_t)__builtin_popcount(fabric_nics_of_gpus(c, 0, f->gpus_per_node));
	fprintf(to, "%u x %s %s", c->n_nics, topo_bits(c->nic_bytes_per_ns, text, sizeof(text)),
		topo_nic(c->nic));
	if (n_used < c->n_nics)
		fprintf(to, ", %u of them used", n_used);
	fputs(": ", to);
	print_raw(c->nic_bytes_per_ns, fabric_nic_efficiency(c), to);
	fputc('\n', to);
	line(to, "");
	fprintf(to, "near to GPU");
	for (uint32_t k = 0; k < c->n_nics; k++)
		fprintf(to, "%s%u", k ? ", " : " ", c->nic_gpu[k]);
	fprintf(to, " (%s), %s GPUDirect RDMA\n", topo_distance(c->distance),
		c->has_gdr ? "with" : "without");
}

static void print_network(const struct fabric *f, FILE *to)
{
	char text[160], other[32];

	line(to, "network");
	fprintf(to, "%s\n", topo_network(f, text, sizeof(text)));
	line(to, "  latency");
	fprintf(to, "%s from NIC to NIC through one switch",
		units_print_time(f->network.latency_ns, text, sizeof(text)));
	if (f->network.kind != FABRIC_SWITCH && f->network.kind != FABRIC_CABLES)
		fprintf(to, ", %s each switch beyond it",
			units_print_time(f->network.hop_latency_ns, other, sizeof(other)));
	fputc('\n', to);
}

static void print_links(const struct fabric *f, FILE *to)
{
	uint64_t n_nics = 0, n_leaves = leaf_count(f), n_pods = leaf_pod_count(f);
	uint64_t n_ports = (uint64_t)f->n_nodes * f->gpus_per_node;
	bool is_dragonfly = f->network.kind == FABRIC_DRAGONFLY;

	for (size_t i = 0; i < f->n_nodes_runs; i++)
		n_nics += (uint64_t)f->nodes[i].n * f->classes[f->nodes[i].class].n_nics;
	line(to, "links");
	fprintf(to, "each way: %llu GPU port%s, %llu NIC%s", (unsigned long long)n_ports,
		s_of(n_ports), (unsigned long long)n_nics, s_of(n_nics));
	if (n_leaves)
		fprintf(to, ", up from %llu %s", (unsigned long long)n_leaves,
			is_dragonfly    ? "routers"
			: n_leaves == 1 ? "leaf"
					: "leaves");
	if (n_pods > 1 && !is_dragonfly)
		fprintf(to, " and %llu pods", (unsigned long long)n_pods);
	if (n_pods > 1 && is_dragonfly)
		fprintf(to, " and between %llu groups", (unsigned long long)n_pods);
	if (f->n_cables)
		fprintf(to, ", %zu cable%s", f->n_cables, s_of(f->n_cables));
	fputc('\n', to);
}

static void print_changes(const struct fabric *f, FILE *to)
{
	for (size_t i = 0; i < f->n_changes && i < CHANGES_SHOWN; i++) {
		char text[128];

		line(to, i ? "" : "changed");
		fprintf(to, "%s\n", topo_change(f, i, text, sizeof(text)));
	}
	if (f->n_changes > CHANGES_SHOWN)
		fprintf(to, "%-13s and %zu more\n", "", f->n_changes - CHANGES_SHOWN);
}

static void print_bounds(const struct fabric *f, FILE *to)
{
	struct topo_bound bounds[TOPO_BOUNDS];
	uint32_t n_half, n_ranks = f->n_nodes * f->gpus_per_node;
	double half = fabric_bisection(f, &n_half);
	int n = topo_bounds(f, bounds);
	char a[32], b[32];

	if (!isnan(half) && n_ranks > 1) {
		line(to, "bisection");
		fprintf(to, "%s each way, %s for each rank of %s half\n",
			topo_rate(half, a, sizeof(a)), topo_rate(half / n_half, b, sizeof(b)),
			2 * n_half == n_ranks ? "a" : "the smaller");
	}
	for (int i = 0; i < n; i++) {
		line(to, i ? "" : "1 GiB");
		fprintf(to, "%-14s at least %-8s at most %-8s bus bandwidth; %s\n",
			coll_kind_name(bounds[i].kind),
			units_print_time(bounds[i].ns, a, sizeof(a)),
			topo_rate(bounds[i].busbw, b, sizeof(b)), bounds[i].where);
	}
}

void topo_print(const struct fabric *f, FILE *to)
{
	uint32_t n_ranks = f->n_nodes * f->gpus_per_node;

	line(to, "fabric");
	fprintf(to, "%s: %u node%s of %u GPU%s, %u rank%s\n", f->name, f->n_nodes, s_of(f->n_nodes),
		f->gpus_per_node, s_of(f->gpus_per_node), n_ranks, s_of(n_ranks));
	line(to, "source");
	fprintf(to, "%s\n", f->source ? f->source : "given");
	if (f->fit.n_points) {
		line(to, "fitted");
		fprintf(to, "%.1f %% off at %u points that were held out, on up to %u ranks\n",
			f->fit.error * 100, f->fit.n_points, f->fit.max_ranks);
	}
	for (uint32_t i = 0; i < f->n_classes; i++)
		print_class(f, i, to);
	print_network(f, to);
	print_links(f, to);
	print_changes(f, to);
	print_bounds(f, to);
}

void topo_print_presets(FILE *to)
{
	const char *name, *summary;

	for (size_t i = 0; (name = fabric_preset_name(i, &summary)); i++)
		fprintf(to, "%-13s %s\n", name, summary);
}
