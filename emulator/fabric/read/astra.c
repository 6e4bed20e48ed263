/* See astra.h. A Switch has one link each way to each of its ends, two hops between them; a Ring
 * has one to either neighbor, a FullyConnected one to each other. ASTRA-sim counts the latency of
 * each hop. */
#include "fabric/read/astra.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"

#define DIMENSIONS_MAX 3
#define MESH_MAX 128 /* ends of a full mesh: each pair has a cable */
#define GIB_PER_GB 1.073741824

enum block { RING, SWITCH, FULL };

struct dimension {
	enum block block;
	uint32_t n;
	double bytes_per_ns, latency_ns;
	const yaml_node_t *at;
};

static int read_block(struct yaml_doc *d, const yaml_node_t *node, struct dimension *ret)
{
	static const char *const names[] = {"Ring", "Switch", "FullyConnected"};
	const char *text, *near;
	int r = yaml_doc_text(d, node, "topology", &text);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(text, names[i]) == 0) {
			ret->block = (enum block)i;
			return 0;
		}
	near = suggest_long(text, names, ARRAY_SIZE(names));
	return yaml_doc_refuse(d, node, "topology: unknown '%.32s'; %s%s%s", text,
			       near ? "did you mean '" : "there are: Ring, Switch, FullyConnected",
			       near ? near : "", near ? "'?" : "");
}

static int read_number(struct yaml_doc *d, const yaml_node_t *node, const char *what, double *ret)
{
	const char *text;
	char *end;
	int r = yaml_doc_text(d, node, what, &text);

	if (r < 0)
		return r;
	*ret = strtod(text, &end);
	if (*end || end == text || !(*ret >= 0 && *ret <= 1e9))
		return yaml_doc_refuse(d, node, "%s: '%.32s' is no number of 0 to 1e9", what, text);
	*ret = fabs(*ret); /* "-0" */
	return 0;
}

/* The @i-th of a list; a single value is a list of one. */
static const yaml_node_t *item(struct yaml_doc *d, const yaml_node_t *node, size_t i)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return i == 0 ? node : NULL;
	return node->data.sequence.items.start + i < node->data.sequence.items.top
		       ? yaml_doc_node(d, node->data.sequence.items.start[i])
		       : NULL;
}

static int read_dimension(struct yaml_doc *d, const yaml_node_t *const lists[4], size_t i,
			  struct dimension *ret)
{
	static const char *const keys[] = {"topology", "npus_count", "bandwidth", "latency"};
	const yaml_node_t *items[4];
	int r;

	for (size_t k = 0; k < 4; k++) {
		items[k] = item(d, lists[k], i);
		if (!items[k])
			return yaml_doc_refuse(d, lists[k],
					       "%s: a value is missing: there are more "
					       "dimensions",
					       keys[k]);
	}
	ret->at = items[0];
	if ((r = read_block(d, items[0], ret)) < 0 ||
	    (r = yaml_doc_count(d, items[1], "npus_count", &ret->n)) < 0 ||
	    (r = read_number(d, items[2], "bandwidth", &ret->bytes_per_ns)) < 0 ||
	    (r = read_number(d, items[3], "latency", &ret->latency_ns)) < 0)
		return r;
	if (!ret->n || !(ret->bytes_per_ns > 0))
		return yaml_doc_refuse(d, items[0], "a dimension without NPUs or bandwidth");
	ret->bytes_per_ns *= GIB_PER_GB;
	return 0;
}

static int read_dimensions(struct yaml_doc *d, struct dimension *dims, size_t *ret_n)
{
	static const char *const keys[] = {"topology", "npus_count", "bandwidth", "latency", NULL};
	const yaml_node_t *root = yaml_doc_root(d), *lists[4];
	const yaml_node_pair_t *p = root->data.mapping.pairs.start;
	int r = 0;

	for (; p < root->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_doc_node(d, p->key);
		const char *name = (const char *)key->data.scalar.value;
		size_t k = 0;

		while (keys[k] && strcmp(keys[k], name) != 0)
			k++;
		if (!keys[k])
			return yaml_doc_unknown(d, key, name, keys);
	}
	for (size_t k = 0; k < 4; k++) {
		lists[k] = yaml_doc_get(d, root, keys[k]);
		if (!lists[k])
			return yaml_doc_refuse(d, root, "'%s:' is missing", keys[k]);
	}
	for (*ret_n = 0; item(d, lists[0], *ret_n); ++*ret_n)
		if (*ret_n == DIMENSIONS_MAX)
			return yaml_doc_refuse(d, lists[0],
					       "more than %d dimensions: nbox has node, leaf and "
					       "spine",
					       DIMENSIONS_MAX);
	for (size_t k = 0; k < 4 && *ret_n; k++)
		if (item(d, lists[k], *ret_n))
			return yaml_doc_refuse(d, lists[k], "%s: more values than dimensions: %zu",
					       keys[k], *ret_n);
	for (size_t i = 0; r == 0 && i < *ret_n; i++)
		r = read_dimension(d, lists, i, &dims[i]);
	return r < 0 || *ret_n ? r : yaml_doc_refuse(d, lists[0], "topology: no dimension");
}

/* How many links an end has. */
static double links_of(const struct dimension *dim)
{
	return dim->block == SWITCH || dim->n < 3 ? 1 : dim->block == RING ? 2 : dim->n - 1;
}

static double latency_of(const struct dimension *dim)
{
	return dim->block == SWITCH ? 2 * dim->latency_ns : dim->latency_ns;
}

/* @node: NULL: one GPU a node. */
static int make_class(struct yaml_doc *d, const struct dimension *node, const struct dimension *net,
		      struct fabric_class *ret)
{
	uint32_t n = node ? node->n : 1;

	if (n > FABRIC_NICS_MAX && net)
		return yaml_doc_refuse(d, node->at,
				       "npus_count: %u NPUs a node, each with a NIC of "
				       "its own; at most %u",
				       n, FABRIC_NICS_MAX);
	*ret = (struct fabric_class){
		.name = "npus",
		.gpu = "NPU",
		.sm = 90,
		.n_gpus = n,
		.domain_nodes = 1,
		.intra = node && node->block == SWITCH ? FABRIC_NVSWITCH : FABRIC_NVLINK,
		/* a lone GPU never uses its port */
		.gpu_bytes_per_ns = node ? node->bytes_per_ns * links_of(node) : net->bytes_per_ns,
		.gpu_latency_ns = node ? latency_of(node) : 0,
		.cpu = FABRIC_OTHER_CPU,
		.has_gdr = true,
		.gpu_efficiency = 1,
		.nic_efficiency = 1,
	};
	if (!net)
		return 0;
	ret->n_nics = n;
	ret->nic_bytes_per_ns = net->bytes_per_ns * links_of(net);
	for (uint32_t i = 0; i < n; i++)
		ret->nic_gpu[i] = i;
	return 0;
}

static int add_cables(struct yaml_doc *d, const struct dimension *net, uint32_t rails,
		      struct fabric *f)
{
	uint32_t n = f->n_nodes, at = 0;
	size_t n_cables = net->block == RING ? n : (size_t)n * (n - 1) / 2;

	if (n > MESH_MAX)
		return yaml_doc_refuse(d, net->at, "a ring or mesh of %u nodes; at most %u", n,
				       MESH_MAX);
	f->n_switches = n;
	f->node_switch = calloc(n, sizeof(*f->node_switch));
	f->cables = calloc(n_cables + 1, sizeof(*f->cables));
	if (!f->node_switch || !f->cables)
		return err_set(d->err, ENOMEM, "%s: out of memory", d->name);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = net->block == RING ? i + 2 : n;

		f->node_switch[i] = i;
		for (uint32_t k = i + 1; k < end && (n > 2 || k < n); k++)
			f->cables[at++] = (struct fabric_cable){i, k % n, net->latency_ns,
								net->bytes_per_ns * rails};
	}
	f->n_cables = at;
	return 0;
}

/* The network of dimensions @net and, where there are leaves and spines, @up. */
static int make_network(struct yaml_doc *d, const struct dimension *net, const struct dimension *up,
			struct fabric_network *ret)
{
	*ret = (struct fabric_network){.kind = FABRIC_SWITCH, .oversubscription = 1};
	if (!net)
		return 0;
	if (up && (net->block != SWITCH || up->block != SWITCH))
		return yaml_doc_refuse(d, up->at,
				       "of three dimensions nbox takes the last two as "
				       "leaf and spine: both must be Switch");
	if (net->block != SWITCH) {
		ret->kind = FABRIC_CABLES;
		return 0;
	}
	ret->kind = FABRIC_RAIL;
	ret->latency_ns = latency_of(net);
	ret->nodes_per_leaf = net->n;
	if (up) {
		ret->hop_latency_ns = latency_of(up) / 2;
		if (up->bytes_per_ns < net->bytes_per_ns)
			ret->oversubscription = net->bytes_per_ns / up->bytes_per_ns;
	}
	return 0;
}

int astra_read(struct yaml_doc *d, uint32_t n_nodes, struct fabric **ret)
{
	struct dimension dims[DIMENSIONS_MAX] = {{0}};
	const struct dimension *node, *net = NULL, *up = NULL;
	struct fabric_network network;
	struct fabric_class class;
	struct fabric *f;
	uint64_t n = 1;
	size_t n_dims = 0;
	int r = read_dimensions(d, dims, &n_dims);

	if (r < 0)
		return r;
	node = n_dims > 1 ? &dims[0] : NULL;
	net = n_dims > 1 ? &dims[1] : &dims[0];
	up = n_dims > 2 ? &dims[2] : NULL;
	n = (uint64_t)net->n * (up ? up->n : 1);
	if (n > 1u << 24)
		return yaml_doc_refuse(d, net->at, "npus_count: too many nodes");
	if (n_nodes && n != n_nodes)
		return yaml_doc_refuse(d, net->at, "%llu nodes are here, %u are wanted",
				       (unsigned long long)n, n_nodes);
	if ((r = make_class(d, node, net, &class)) < 0 ||
	    (r = make_network(d, net, up, &network)) < 0)
		return r;
	f = fabric_new(&class, &network, (uint32_t)n);
	if (!f)
		return err_set(d->err, ENOMEM, "%s: out of memory", d->name);
	f->has_size = true;
	r = network.kind == FABRIC_CABLES ? add_cables(d, net, class.n_gpus, f) : 0;
	if (r < 0) {
		fabric_free(f);
		return r;
	}
	*ret = f;
	return 0;
}
