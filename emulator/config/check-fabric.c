/* See check-fabric.h. */
#include "config/check-fabric.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/change-nodes.h"
#include "config/convert.h"
#include "fabric/read/open.h"

static const enum option_id hops[] = {CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH,
				      CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH};

/* The option that names a whole fabric, or NICs, which a node of this machine's kind gets;
 * CONFIG_OPTIONS: none does. */
static enum option_id given(const struct config *c)
{
	return config_text(c, CONFIG_PRESET)   ? CONFIG_PRESET
	       : config_text(c, CONFIG_FABRIC) ? CONFIG_FABRIC
	       : config_text(c, CONFIG_INTER)  ? CONFIG_INTER
					       : CONFIG_OPTIONS;
}

/* @err's sentence, with the place of option @id in front. */
static int refuse(const struct config *c, enum option_id id, size_t item, int r, struct err *err)
{
	char where[VALUE_WHERE_MAX];

	return r == -ENOMEM ? r
			    : (err_prefix(err, EINVAL, "%s",
					  config_where(c, id, item, where, sizeof(where))),
			       -EINVAL);
}

/* The nodes' NICs will be --inter's; with them more than one node is checked. */
static int open_machine(const struct config *c, uint32_t n_nodes, uint32_t gpus_per_node,
			struct fabric **ret, struct err *err)
{
	struct fabric *f = NULL;
	struct err why = {""};
	struct fabric_class *k;
	const char *source =
		"this machine's GPUs and kind of NIC, by /sys; the network is assumed: one switch";

	if (fabric_open_machine("", 1, gpus_per_node, &f, &why) < 0)
		return value_refuse(c, CONFIG_INTER, 0, err, "there is no node to have NICs: %s",
				    why.text);
	k = &f->classes[0];
	f->n_nodes = f->nodes[0].n = n_nodes ? n_nodes : 1;
	if (!k->n_nics || k->nic == FABRIC_SOCKET) {
		k->nic = FABRIC_INFINIBAND;
		k->distance = FABRIC_PXB;
		k->has_gdr = true;
		source =
			"this machine's GPUs, by /sys; NICs and network are assumed: InfiniBand with "
			"GPUDirect RDMA, one switch";
	}
	free(f->source);
	f->source = strdup(source);
	if (!f->source) {
		fabric_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

/* 0 nodes: those of a file. 0 GPUs: all of a node. */
static int open_given(const struct config *c, uint32_t n_nodes, uint32_t gpus_per_node,
		      struct fabric **ret, struct err *err)
{
	enum option_id id = given(c);
	const char *text = config_text(c, id);
	int r;

	if (id == CONFIG_INTER)
		return open_machine(c, n_nodes, gpus_per_node, ret, err);
	if (id == CONFIG_FABRIC)
		r = fabric_open(text, n_nodes, gpus_per_node, ret, err);
	else if (strcasecmp(text, "machine") == 0)
		r = fabric_open_machine("", n_nodes, gpus_per_node, ret, err);
	else
		r = fabric_preset(text, n_nodes ? n_nodes : 1, gpus_per_node, ret, err);
	return r < 0 ? refuse(c, id, 0, r, err) : 0;
}

static int set_count(struct config *c, enum option_id id, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return config_is_set(c, id) ? 0 : config_set(c, id, SOURCE_DEFAULT, text);
}

/* Of a fabric and a preset, one a former run's, the one that is given now counts. */
static void replace_former(struct config *c)
{
	struct config_value *preset = &c->values[CONFIG_PRESET],
			    *fabric = &c->values[CONFIG_FABRIC];

	if (!c->is_of_run || !preset->n_items || !fabric->n_items)
		return;
	if (preset->source == SOURCE_FILE && fabric->source > SOURCE_FILE)
		value_clear(preset);
	else if (fabric->source == SOURCE_FILE && preset->source > SOURCE_FILE)
		value_clear(fabric);
}

int check_nodes_of_fabric(struct config *c, struct err *err)
{
	char where[VALUE_WHERE_MAX];
	struct fabric *f = NULL;
	uint64_t gpus = 0, nodes = 0;
	int r = 0;

	if (given(c) == CONFIG_OPTIONS)
		return 0;
	replace_former(c);
	if (config_text(c, CONFIG_PRESET) && config_text(c, CONFIG_FABRIC))
		return value_refuse(c, CONFIG_FABRIC, 0, err,
				    "a fabric and a preset (%s): give one of them",
				    config_where(c, CONFIG_PRESET, 0, where, sizeof(where)));
	if (config_is_set(c, CONFIG_NODES))
		r = value_count(c, CONFIG_NODES, 1, WIRE_WORLD_MAX, &nodes, err);
	if (r == 0)
		r = open_given(c, (uint32_t)nodes, 0, &f, err);
	if (r < 0)
		return r;
	if (config_is_set(c, CONFIG_GPUS_PER_NODE))
		r = value_count(c, CONFIG_GPUS_PER_NODE, 1, WIRE_WORLD_MAX, &gpus, err);
	if (r == 0 && gpus > f->gpus_per_node)
		r = value_refuse(c, CONFIG_GPUS_PER_NODE, 0, err,
				 "%llu gpus per node are more than a node of %s has: %u (%s)",
				 (unsigned long long)gpus, f->name, f->gpus_per_node,
				 config_where(c, given(c), 0, where, sizeof(where)));
	if (r == 0)
		r = set_count(c, CONFIG_GPUS_PER_NODE, f->gpus_per_node);
	if (r == 0 && f->has_size)
		r = set_count(c, CONFIG_NODES, f->n_nodes);
	fabric_free(f);
	return r;
}

/* The four hop options: a GPU has its port, and a NIC. What was given is what a link carries. */
static int plain(struct config *c, struct err *err)
{
	const struct topology *t = &c->topology;
	struct fabric_class k = {
		.name = "plain",
		.gpu = "GPU",
		.sm = 80,
		.n_gpus = t->gpus_per_node,
		.domain_nodes = 1,
		.intra = FABRIC_NVSWITCH,
		.gpu_bytes_per_ns = t->intra.bytes_per_ns,
		.gpu_efficiency = 1,
		.gpu_latency_ns = t->intra.latency_ns,
		.n_nics = t->gpus_per_node < FABRIC_NICS_MAX ? t->gpus_per_node : FABRIC_NICS_MAX,
		.nic_efficiency = 1,
		.has_gdr = true,
	};
	const struct fabric_network network = {.kind = FABRIC_SWITCH,
					       .latency_ns = t->inter.latency_ns,
					       .oversubscription = 1};

	k.nic_bytes_per_ns = t->inter.bytes_per_ns * k.n_gpus / k.n_nics;
	fabric_spread_nics(&k);
	c->fabric = fabric_new(&k, &network, t->n_nodes);
	if (!c->fabric)
		return err_set(err, ENOMEM, "out of memory");
	snprintf(c->fabric->name, sizeof(c->fabric->name), "plain");
	c->fabric->source = strdup("latency and bandwidth of a GPU's port and of its NIC");
	return c->fabric->source ? fabric_check(c->fabric, err)
				 : err_set(err, ENOMEM, "out of memory");
}

/* "100Gbps" or "100Gbps,2us" behind the name. */
static int change_link(struct config *c, size_t item, struct err *err)
{
	const char *text = c->values[CONFIG_CABLE].items[item].text, *eq = strrchr(text, '=');
	char name[64], rate[32];
	const char *comma = eq ? strchr(eq, ',') : NULL;
	size_t n = !eq ? 0 : comma ? (size_t)(comma - eq) - 1 : strlen(eq + 1);
	double bytes_per_ns = -1, latency_ns = -1;
	int r;

	if (!eq || eq - text >= (long)sizeof(name) || n >= sizeof(rate))
		return value_refuse(c, CONFIG_CABLE, item, err,
				    "'%.64s' is no NAME=RATE[,LATENCY], such as node3.nic2=100Gbps",
				    text);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	snprintf(rate, sizeof(rate), "%.*s", (int)n, eq + 1);
	r = units_bandwidth(rate, &bytes_per_ns, err);
	if (r == 0 && comma)
		r = units_time(comma + 1, &latency_ns, err);
	if (r == 0)
		r = fabric_change(c->fabric, name, bytes_per_ns, latency_ns, err);
	return r < 0 ? refuse(c, CONFIG_CABLE, item, r, err) : 0;
}

static int set_ecmp(struct config *c, struct err *err)
{
	uint64_t seed = 0;
	int r = value_count(c, CONFIG_ECMP, 0, UINT32_MAX, &seed, err);

	if (r == 0 && !c->fabric)
		return value_refuse(c, CONFIG_ECMP, 0, err,
				    "there is no fabric whose leaves have cables: give --preset or "
				    "--fabric");
	if (r < 0)
		return r;
	c->fabric->network.ecmp = (uint32_t)seed;
	r = fabric_check(c->fabric, err);
	return r < 0 ? refuse(c, CONFIG_ECMP, 0, r, err) : 0;
}

static int set_oversubscription(struct config *c, struct err *err)
{
	struct fabric_network *n = c->fabric ? &c->fabric->network : NULL;
	const char *text = config_text(c, CONFIG_OVERSUBSCRIPTION);
	int r;

	if (!n || n->kind == FABRIC_SWITCH || n->kind == FABRIC_CABLES)
		return value_refuse(c, CONFIG_OVERSUBSCRIPTION, 0, err,
				    "there is no fabric with leaves: give --preset or --fabric, of "
				    "a network of rails, leaves and spines, a fat tree or a "
				    "dragonfly");
	r = units_ratio(text, &n->oversubscription, err);
	if (r == 0)
		r = fabric_check(c->fabric, err);
	return r < 0 ? refuse(c, CONFIG_OVERSUBSCRIPTION, 0, r, err) : 0;
}

/* What a message between these two ranks meets: all latencies, the least bandwidth. */
static bool along(const struct fabric *f, uint32_t src, uint32_t dst, struct hop_cost *ret)
{
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links);
	struct hop_cost hop = {0, INFINITY};

	for (int i = 0; i < n; i++) {
		struct fabric_link l;

		fabric_link(f, links[i], &l);
		hop.latency_ns += l.latency_ns;
		hop.bytes_per_ns = fmin(hop.bytes_per_ns, l.bytes_per_ns);
	}
	if (n > 0)
		*ret = hop;
	return n > 0;
}

/* The default of the two options that stand for a hop. A latency of 0 is one that NCCL's own times
 * contain: other models keep theirs. Numbers have no exponent here. */
static int set_hop(struct config *c, enum option_id latency, enum option_id bandwidth,
		   const struct hop_cost *hop)
{
	bool is_slow = hop->bytes_per_ns < 1e-3;
	char text[48];
	int r = 0;

	snprintf(text, sizeof(text), hop->latency_ns < 1 ? "%.6fus" : "%.10gus",
		 hop->latency_ns / 1e3);
	if (hop->latency_ns > 0 && !config_is_set(c, latency))
		r = config_set(c, latency, SOURCE_DEFAULT, text);
	snprintf(text, sizeof(text), is_slow ? "%.10gB/s" : "%.10gGB/s",
		 is_slow ? hop->bytes_per_ns * 1e9 : hop->bytes_per_ns);
	if (r == 0 && !config_is_set(c, bandwidth))
		r = config_set(c, bandwidth, SOURCE_DEFAULT, text);
	return r;
}

/* Models that know two kinds of hop take them from the fabric. A node's ranks share its NICs. */
static int set_hops(struct config *c, struct err *err)
{
	const struct fabric *f = c->fabric;
	uint32_t last = (f->n_nodes - 1) * f->gpus_per_node;
	const struct fabric_class *k = &f->classes[0];
	struct hop_cost hop;
	int r = 0;

	if (f->gpus_per_node > 1 && along(f, 0, 1, &hop))
		r = set_hop(c, CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH, &hop);
	if (r == 0 && last && along(f, 0, last, &hop)) {
		if (fabric_domain(f, 0) != fabric_domain(f, last) && k->n_nics < f->gpus_per_node)
			hop.bytes_per_ns = hop.bytes_per_ns * k->n_nics / f->gpus_per_node;
		r = set_hop(c, CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH, &hop);
	}
	return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int check_fabric(struct config *c, struct err *err)
{
	int r = 0;

	c->fabric = fabric_free(c->fabric);
	if (given(c) != CONFIG_OPTIONS)
		r = open_given(c, c->topology.n_nodes, c->topology.gpus_per_node, &c->fabric, err);
	if (r == 0)
		r = change_nodes(c, err);
	if (r == 0 && config_text(c, CONFIG_OVERSUBSCRIPTION))
		r = set_oversubscription(c, err);
	return r == 0 && c->fabric ? set_hops(c, err) : r;
}

int check_links_of_fabric(struct config *c, struct err *err)
{
	bool has_hops = false;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hops); i++)
		has_hops |= config_is_set(c, hops[i]);
	if (!c->fabric && has_hops)
		r = plain(c, err);
	if (r == 0 && !c->fabric && config_text(c, CONFIG_CABLE))
		return value_refuse(
			c, CONFIG_CABLE, 0, err,
			"there is no fabric whose link could be otherwise: give --preset or --fabric");
	for (size_t i = 0; r == 0 && i < c->values[CONFIG_CABLE].n_items; i++)
		r = change_link(c, i, err);
	return r == 0 && config_text(c, CONFIG_ECMP) ? set_ecmp(c, err) : r;
}
