/* The fabric as JSON: figures in GB/s and us, with their units in the keys. */
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "fabric/leaf.h"
#include "nbox/topo/bounds.h"
#include "nbox/topo/topo.h"
#include "nbox/topo/words.h"

static json_t *class_json(const struct fabric_class *c)
{
	json_t *near = json_array();

	for (uint32_t i = 0; i < c->n_nics; i++)
		json_array_append_new(near, json_integer(c->nic_gpu[i]));
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:i, s:s, s:b, s:f, s:s, s:s, s:i, s:f, s:o, s:s, s:b, s:f}",
		"name", c->name, "gpu", c->gpu, "sm", (int)c->sm, "gpus", (int)c->n_gpus,
		"domain_nodes", (int)c->domain_nodes, "intra", topo_intra(c), "nvls", c->has_nvls,
		"gpu_gb_per_s", c->gpu_bytes_per_ns, "cpu", topo_cpu(c->cpu), "nic",
		topo_nic(c->nic), "nics", (int)c->n_nics, "nic_gb_per_s", c->nic_bytes_per_ns,
		"nic_gpus", near, "distance", topo_distance(c->distance), "gdr", c->has_gdr,
		"pcie_gb_per_s", c->pcie_bytes_per_ns);
}

static json_t *bounds_json(const struct fabric *f)
{
	struct topo_bound bounds[TOPO_BOUNDS];
	json_t *list = json_array();
	int n = topo_bounds(f, bounds);

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:f, s:f, s:s}", "op",
						      coll_kind_name(bounds[i].kind), "bytes",
						      (json_int_t)TOPO_BOUND_BYTES, "bound_us",
						      bounds[i].ns / 1e3, "busbw_gb_per_s",
						      bounds[i].busbw, "where", bounds[i].where));
	return list;
}

static json_t *changes_json(const struct fabric *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_changes; i++) {
		struct fabric_link l;
		char name[64];

		fabric_link(f, f->changes[i].link, &l);
		json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "link",
						      fabric_link_name(f, f->changes[i].link, name,
								       sizeof(name)),
						      "gb_per_s", l.bytes_per_ns, "latency_us",
						      l.latency_ns / 1e3));
	}
	return list;
}

static json_t *fabric_json(const struct fabric *f)
{
	json_t *classes = json_array(), *nodes = json_array();
	uint32_t n_half;
	double half = fabric_bisection(f, &n_half);
	char text[160];

	for (uint32_t i = 0; i < f->n_classes; i++)
		json_array_append_new(classes, class_json(&f->classes[i]));
	for (size_t i = 0; i < f->n_nodes_runs; i++)
		json_array_append_new(nodes, json_pack("{s:s, s:I, s:I}", "class",
						       f->classes[f->nodes[i].class].name, "first",
						       (json_int_t)f->nodes[i].first, "nodes",
						       (json_int_t)f->nodes[i].n));
	return json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:{s:s, s:f, s:f, s:I, s:I}, s:o, s:o, s:o}",
		"name", f->name, "source", f->source ? f->source : "", "nodes",
		(json_int_t)f->n_nodes, "gpus_per_node", (json_int_t)f->gpus_per_node, "ranks",
		(json_int_t)f->n_nodes * f->gpus_per_node, "classes", classes, "runs", nodes,
		"network", "text", topo_network(f, text, sizeof(text)), "latency_us",
		f->network.latency_ns / 1e3, "hop_latency_us", f->network.hop_latency_ns / 1e3,
		"leaves", (json_int_t)leaf_count(f), "pods", (json_int_t)leaf_pod_count(f),
		"bisection_gb_per_s", isnan(half) ? json_null() : json_real(half), "bounds",
		bounds_json(f), "changed", changes_json(f));
}

int topo_print_json(const struct fabric *f, FILE *to)
{
	json_t *all = fabric_json(f);

	if (!all)
		return -EILSEQ;
	json_dumpf(all, to, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	fputc('\n', to);
	json_decref(all);
	return 0;
}
