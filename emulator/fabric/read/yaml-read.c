/* See yaml-read.h. What is one value is read by fields.c; here is what is more. */
#include "fabric/read/yaml-read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "fabric/read/fields.h"

#define KEYS_MAX 32
#define STARS_MAX 64 /* links that are named with a star */

struct reader {
	struct yaml_doc *d;
	struct fabric *f;
	bool has_class;   /* from a preset */
	bool has_network; /* the same */
};

static int out_of_memory(struct reader *r)
{
	return err_set(r->d->err, ENOMEM, "%s: out of memory", r->d->name);
}

/* Reads the keys of @mapping that @fields has into @object; others must be among @more. */
static int read_fields(struct reader *r, const yaml_node_t *mapping, const struct field *fields,
		       const char *const *more, void *object)
{
	const yaml_node_pair_t *p = mapping->data.mapping.pairs.start;
	const char *keys[KEYS_MAX] = {NULL};
	size_t n_more = 0, n;

	for (; more[n_more]; n_more++)
		keys[n_more] = more[n_more];
	for (n = n_more; fields[n - n_more].key; n++)
		keys[n] = fields[n - n_more].key;
	for (; p < mapping->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_doc_node(r->d, p->key);
		const yaml_node_t *value = yaml_doc_node(r->d, p->value);
		const char *name = (const char *)key->data.scalar.value, *text;
		const struct field *field = field_find(fields, name);
		struct err err = {""};
		bool is_more = false;
		int e;

		for (size_t i = 0; i < n_more; i++)
			is_more = is_more || strcmp(more[i], name) == 0;
		if (is_more)
			continue;
		if (!field)
			return yaml_doc_unknown(r->d, key, name, keys);
		if ((e = yaml_doc_text(r->d, value, name, &text)) < 0)
			return e;
		if (field_set(field, object, text, &err) < 0)
			return yaml_doc_refuse(r->d, value, "%s", err.text);
	}
	return 0;
}

static int need(struct reader *r, const yaml_node_t *mapping, const char *what,
		const char *const *keys)
{
	for (; *keys; keys++)
		if (!yaml_doc_get(r->d, mapping, *keys))
			return yaml_doc_refuse(r->d, mapping, "%s: '%s:' is missing", what, *keys);
	return 0;
}

/* The class and the network of the preset that @mapping names; without: 0, *ret is NULL. */
static int read_preset(struct reader *r, const yaml_node_t *mapping, struct fabric **ret)
{
	const yaml_node_t *node = yaml_doc_get(r->d, mapping, "preset");
	struct err err = {""};
	const char *name;
	int e = node ? yaml_doc_text(r->d, node, "preset", &name) : 0;

	*ret = NULL;
	if (e < 0 || !node)
		return e;
	if (fabric_preset(name, 1, 0, ret, &err) < 0)
		return yaml_doc_refuse(r->d, node, "%s", err.text);
	return 0;
}

/* Every node's NICs beside its GPUs evenly, unless the file says where. */
static int read_nic_gpus(struct reader *r, const yaml_node_t *mapping, bool is_default,
			 struct fabric_class *c)
{
	const yaml_node_t *list = yaml_doc_get(r->d, mapping, "nic_gpus");
	const yaml_node_item_t *item;
	int e;

	if (c->n_nics > FABRIC_NICS_MAX)
		return yaml_doc_refuse(r->d, mapping, "nics: %u are too many; at most %u",
				       c->n_nics, FABRIC_NICS_MAX);
	if (!list && is_default)
		fabric_spread_nics(c);
	if (!list)
		return 0;
	if ((e = yaml_doc_sequence(r->d, list, "nic_gpus")) < 0)
		return e;
	item = list->data.sequence.items.start;
	if (list->data.sequence.items.top - item != c->n_nics)
		return yaml_doc_refuse(r->d, list, "nic_gpus: %u NICs want %u numbers", c->n_nics,
				       c->n_nics);
	for (uint32_t i = 0; e == 0 && i < c->n_nics; i++)
		e = yaml_doc_count(r->d, yaml_doc_node(r->d, item[i]), "nic_gpus", &c->nic_gpu[i]);
	return e;
}

static int read_class(struct reader *r, const yaml_node_t *node)
{
	static const char *const more[] = {"preset", "nic_gpus", NULL};
	static const char *const needed[] = {"name", "sm", "gpus", "intra", "gpu_bandwidth", NULL};
	static const char *const needed_nic[] = {"nic", "nic_bandwidth", NULL};
	struct fabric_class *c = &r->f->classes[r->f->n_classes];
	struct fabric *preset;
	bool has_preset;
	int e = yaml_doc_mapping(r->d, node, "classes");

	if (e < 0 || (e = read_preset(r, node, &preset)) < 0)
		return e;
	*c = (struct fabric_class){.domain_nodes = 1, .cpu = FABRIC_OTHER_CPU};
	has_preset = preset;
	if (preset)
		*c = preset->classes[0];
	fabric_free(preset);
	if ((e = read_fields(r, node, fields_class, more, c)) < 0 ||
	    (e = has_preset ? 0 : need(r, node, "class", needed)) < 0 ||
	    (e = has_preset || !c->n_nics ? 0 : need(r, node, c->name, needed_nic)) < 0)
		return e;
	for (uint32_t i = 0; i < r->f->n_classes; i++)
		if (strcmp(r->f->classes[i].name, c->name) == 0)
			return yaml_doc_refuse(r->d, node, "a second class '%s'", c->name);
	r->f->n_classes++;
	return read_nic_gpus(r, node,
			     !has_preset || yaml_doc_get(r->d, node, "nics") ||
				     yaml_doc_get(r->d, node, "gpus"),
			     c);
}

static int read_classes(struct reader *r, const yaml_node_t *list)
{
	const yaml_node_item_t *item;
	int e = yaml_doc_sequence(r->d, list, "classes");

	if (e < 0)
		return e;
	r->f->n_classes = 0;
	for (item = list->data.sequence.items.start; e == 0 && item < list->data.sequence.items.top;
	     item++) {
		if (r->f->n_classes == FABRIC_CLASSES_MAX)
			return yaml_doc_refuse(r->d, list, "at most %u classes",
					       FABRIC_CLASSES_MAX);
		e = read_class(r, yaml_doc_node(r->d, *item));
	}
	r->has_class = e == 0 && r->f->n_classes;
	return e;
}

static int find_class(struct reader *r, const yaml_node_t *node, uint32_t *ret)
{
	const char *names[FABRIC_CLASSES_MAX], *name, *near;
	int e = yaml_doc_text(r->d, node, "class", &name);

	for (uint32_t i = 0; e == 0 && i < r->f->n_classes; i++) {
		names[i] = r->f->classes[i].name;
		if (strcmp(names[i], name) == 0) {
			*ret = i;
			return 0;
		}
	}
	if (e < 0)
		return e;
	near = suggest_long(name, names, r->f->n_classes);
	return yaml_doc_refuse(r->d, node, "no class is called '%.32s'%s%s%s", name,
			       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* {class: NAME, nodes: N}. The last one may leave out its number: it is the rest. */
static int read_run(struct reader *r, const yaml_node_t *node, uint32_t n_nodes, bool is_last,
		    struct fabric_nodes *ret)
{
	static const char *const keys[] = {"class", "nodes", NULL};
	static const char *const need_class[] = {"class", NULL};
	static const struct field none = {0};
	const yaml_node_t *number;
	int e = yaml_doc_mapping(r->d, node, "nodes");

	if (e < 0 || (e = read_fields(r, node, &none, keys, NULL)) < 0 ||
	    (e = need(r, node, "nodes", need_class)) < 0 ||
	    (e = find_class(r, yaml_doc_get(r->d, node, "class"), &ret->class)) < 0)
		return e;
	number = yaml_doc_get(r->d, node, "nodes");
	ret->first = r->f->n_nodes;
	if (number) {
		if ((e = yaml_doc_count(r->d, number, "nodes", &ret->n)) < 0)
			return e;
		if (!ret->n)
			return yaml_doc_refuse(r->d, number, "nodes: at least 1");
	} else {
		if (!is_last || n_nodes <= r->f->n_nodes)
			return yaml_doc_refuse(r->d, node, "'nodes:' is missing: how many?");
		ret->n = n_nodes - r->f->n_nodes;
	}
	if (__builtin_add_overflow(r->f->n_nodes, ret->n, &r->f->n_nodes))
		return yaml_doc_refuse(r->d, node, "nodes: too many");
	return 0;
}

static int read_nodes(struct reader *r, const yaml_node_t *list, uint32_t n_nodes)
{
	const yaml_node_item_t *item;
	size_t n = 1, i = 0;
	int e = list ? yaml_doc_sequence(r->d, list, "nodes") : 0;

	if (e < 0)
		return e;
	item = list ? list->data.sequence.items.start : NULL;
	if (list)
		n = (size_t)(list->data.sequence.items.top - item);
	r->f->nodes = calloc(n + 1, sizeof(*r->f->nodes));
	if (!r->f->nodes)
		return out_of_memory(r);
	r->f->n_nodes_runs = n;
	if (!list) {
		r->f->n_nodes = n_nodes;
		r->f->nodes[0].n = n_nodes;
	}
	for (; list && e == 0 && i < n; i++)
		e = read_run(r, yaml_doc_node(r->d, item[i]), n_nodes, i + 1 == n, &r->f->nodes[i]);
	if (e == 0 && list && n_nodes && n_nodes != r->f->n_nodes)
		return yaml_doc_refuse(r->d, list, "%u nodes are here, %u are wanted",
				       r->f->n_nodes, n_nodes);
	return e;
}

static int read_cables(struct reader *r, const yaml_node_t *list)
{
	static const char *const more[] = {NULL};
	static const char *const needed[] = {"from", "to", "bandwidth", NULL};
	const yaml_node_item_t *item;
	int e = yaml_doc_sequence(r->d, list, "cables");
	size_t n;

	if (e < 0)
		return e;
	item = list->data.sequence.items.start;
	n = (size_t)(list->data.sequence.items.top - item);
	free(r->f->cables);
	r->f->n_cables = 0;
	r->f->cables = calloc(n + 1, sizeof(*r->f->cables));
	if (!r->f->cables)
		return out_of_memory(r);
	for (size_t i = 0; e == 0 && i < n; i++) {
		const yaml_node_t *node = yaml_doc_node(r->d, item[i]);

		if ((e = yaml_doc_mapping(r->d, node, "cables")) < 0 ||
		    (e = read_fields(r, node, fields_cable, more, &r->f->cables[i])) < 0)
			return e;
		e = need(r, node, "cable", needed);
		r->f->n_cables++;
	}
	return e;
}

/* nodes: [{switch: 0, nodes: 4}, ...]: where they hang, in order. */
static int read_switches(struct reader *r, const yaml_node_t *list)
{
	static const char *const keys[] = {"switch", "nodes", NULL};
	static const struct field none = {0};
	const yaml_node_item_t *item;
	uint32_t done = 0, at, n;
	int e = yaml_doc_sequence(r->d, list, "nodes");

	if (e < 0)
		return e;
	if (r->f->n_nodes > 1u << 24)
		return yaml_doc_refuse(r->d, list, "%u nodes are too many", r->f->n_nodes);
	free(r->f->node_switch);
	r->f->node_switch = malloc((r->f->n_nodes + 1) * sizeof(*r->f->node_switch));
	if (!r->f->node_switch)
		return out_of_memory(r);
	memset(r->f->node_switch, 0xff, r->f->n_nodes * sizeof(*r->f->node_switch));
	for (item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_doc_node(r->d, *item);

		if ((e = yaml_doc_mapping(r->d, node, "nodes")) < 0 ||
		    (e = read_fields(r, node, &none, keys, NULL)) < 0 ||
		    (e = need(r, node, "nodes", keys)) < 0 ||
		    (e = yaml_doc_count(r->d, yaml_doc_get(r->d, node, "switch"), "switch", &at)) <
			    0 ||
		    (e = yaml_doc_count(r->d, yaml_doc_get(r->d, node, "nodes"), "nodes", &n)) < 0)
			return e;
		if (n > r->f->n_nodes - done)
			return yaml_doc_refuse(r->d, node, "more nodes than the cluster's %u",
					       r->f->n_nodes);
		for (; n > 0; n--)
			r->f->node_switch[done++] = at;
	}
	return 0;
}

static int read_network(struct reader *r, const yaml_node_t *node)
{
	static const char *const more[] = {"preset", "switches", "nodes", "cables", NULL};
	static const char *const needed[] = {"kind", "latency", NULL};
	static const char *const needed_cables[] = {"switches", "nodes", "cables", NULL};
	struct fabric_network *n = &r->f->network;
	struct fabric *preset = NULL;
	int e = yaml_doc_mapping(r->d, node, "network");

	if (e < 0 || (e = read_preset(r, node, &preset)) < 0)
		return e;
	if (!r->has_network)
		n->oversubscription = 1;
	if (preset) {
		*n = preset->network;
		r->has_network = true;
	}
	fabric_free(preset);
	if ((e = read_fields(r, node, fields_network, more, n)) < 0 ||
	    (e = r->has_network ? 0 : need(r, node, "network", needed)) < 0)
		return e;
	r->has_network = true;
	if (n->kind != FABRIC_CABLES) {
		for (const char *const *key = needed_cables; *key; key++)
			if (yaml_doc_get(r->d, node, *key))
				return yaml_doc_refuse(r->d, node, "'%s:' is of kind: cables only",
						       *key);
		return 0;
	}
	if ((e = need(r, node, "network", needed_cables)) < 0 ||
	    (e = yaml_doc_count(r->d, yaml_doc_get(r->d, node, "switches"), "switches",
				&r->f->n_switches)) < 0 ||
	    (e = read_switches(r, yaml_doc_get(r->d, node, "nodes"))) < 0)
		return e;
	return read_cables(r, yaml_doc_get(r->d, node, "cables"));
}

/* links: [{link: node3.nic2, bandwidth: 100Gbps, latency: 5us}]: what differs. The fields are
 * those of a cable but for its ends. */
static int read_links(struct reader *r, const yaml_node_t *list)
{
	static const char *const more[] = {"link", NULL};
	static const char *const needed[] = {"link", NULL};
	const yaml_node_item_t *item;
	uint32_t n_stars = 0;
	int e = yaml_doc_sequence(r->d, list, "links");

	if (e < 0)
		return e;
	for (item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_doc_node(r->d, *item);
		struct fabric_cable change = {.bytes_per_ns = -1, .latency_ns = -1};
		struct err err = {""};
		const char *name;

		if ((e = yaml_doc_mapping(r->d, node, "links")) < 0 ||
		    (e = read_fields(r, node, fields_cable + 2, more, &change)) < 0 ||
		    (e = need(r, node, "links", needed)) < 0 ||
		    (e = yaml_doc_text(r->d, yaml_doc_get(r->d, node, "link"), "link", &name)) < 0)
			return e;
		if (change.bytes_per_ns < 0 && change.latency_ns < 0)
			return yaml_doc_refuse(r->d, node,
					       "links: what is different? bandwidth: or latency:");
		n_stars += strchr(name, '*') != NULL;
		if (n_stars > STARS_MAX)
			return yaml_doc_refuse(r->d, node, "more than %d names with a star",
					       STARS_MAX);
		e = fabric_change(r->f, name, change.bytes_per_ns, change.latency_ns, &err);
		if (e < 0)
			return yaml_doc_refuse(r->d, node, "%s", err.text);
	}
	return 0;
}

/* fitted: what nbox fit --fabric says of itself. */
static int read_fit(struct reader *r, const yaml_node_t *node)
{
	static const char *const none[] = {NULL};
	static const char *const needed[] = {"points",    "error",     "min_ranks", "max_ranks",
					     "min_bytes", "max_bytes", NULL};
	int e = yaml_doc_mapping(r->d, node, "fitted");

	if (e < 0 || (e = read_fields(r, node, fields_fit, none, &r->f->fit)) < 0)
		return e;
	return need(r, node, "fitted", needed);
}

/* residuals: [{op: allreduce, bytes: 8, factor: 1.2}]: what nbox fit --fabric found beyond links.
 */
static int read_residuals(struct reader *r, const yaml_node_t *list)
{
	static const char *const none[] = {NULL};
	static const char *const needed[] = {"op", "bytes", "factor", NULL};
	const yaml_node_item_t *item;
	int e = yaml_doc_sequence(r->d, list, "residuals");
	size_t n;

	if (e < 0)
		return e;
	item = list->data.sequence.items.start;
	n = (size_t)(list->data.sequence.items.top - item);
	r->f->residuals = calloc(n + 1, sizeof(*r->f->residuals));
	if (!r->f->residuals)
		return out_of_memory(r);
	for (size_t i = 0; i < n; i++) {
		const yaml_node_t *node = yaml_doc_node(r->d, item[i]);
		struct fabric_residual *one = &r->f->residuals[i];

		if ((e = yaml_doc_mapping(r->d, node, "residuals")) < 0 ||
		    (e = read_fields(r, node, fields_residual, none, one)) < 0 ||
		    (e = need(r, node, "residuals", needed)) < 0)
			return e;
		r->f->n_residuals++;
	}
	return 0;
}

static int read_top(struct reader *r, const yaml_node_t *root)
{
	static const char *const keys[] = {"name",  "preset", "classes",   "nodes", "network",
					   "links", "fitted", "residuals", NULL};
	static const struct field none = {0};
	const yaml_node_t *name = yaml_doc_get(r->d, root, "name");
	struct fabric *preset = NULL;
	const char *text;
	int e;

	if ((e = read_fields(r, root, &none, keys, NULL)) < 0 ||
	    (e = read_preset(r, root, &preset)) < 0)
		return e;
	if (preset) {
		r->f->classes[0] = preset->classes[0];
		r->f->n_classes = 1;
		r->f->network = preset->network;
		r->has_class = r->has_network = true;
	}
	fabric_free(preset);
	if (!name)
		return 0;
	if ((e = yaml_doc_text(r->d, name, "name", &text)) < 0)
		return e;
	if (strlen(text) >= sizeof(r->f->name))
		return yaml_doc_refuse(r->d, name, "name: at most %zu letters",
				       sizeof(r->f->name) - 1);
	memcpy(r->f->name, text, strlen(text) + 1);
	return 0;
}

/* As many nodes as hang on the switches of kind: cables, else 0. What is wrong there is said when
 * they are read. */
static int count_attached(struct reader *r, const yaml_node_t *network, uint32_t *ret)
{
	const yaml_node_t *list = network && network->type == YAML_MAPPING_NODE
					  ? yaml_doc_get(r->d, network, "nodes")
					  : NULL;
	const yaml_node_item_t *item;
	uint32_t sum = 0, n;

	for (item = list && list->type == YAML_SEQUENCE_NODE ? list->data.sequence.items.start
							     : NULL;
	     item && item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_doc_node(r->d, *item);
		const yaml_node_t *count =
			node->type == YAML_MAPPING_NODE ? yaml_doc_get(r->d, node, "nodes") : NULL;
		int e = count ? yaml_doc_count(r->d, count, "nodes", &n) : 0;

		if (e < 0)
			return e;
		if (count && __builtin_add_overflow(sum, n, &sum))
			return yaml_doc_refuse(r->d, count, "nodes: too many");
	}
	*ret = sum;
	return 0;
}

/* The sections in the order in which they need each other. */
static int read_all(struct reader *r, uint32_t n_nodes, uint32_t gpus_per_node)
{
	yaml_node_t *root = yaml_doc_root(r->d);
	const yaml_node_t *classes = yaml_doc_get(r->d, root, "classes");
	const yaml_node_t *network = yaml_doc_get(r->d, root, "network");
	const yaml_node_t *links = yaml_doc_get(r->d, root, "links");
	const yaml_node_t *fit = yaml_doc_get(r->d, root, "fitted");
	const yaml_node_t *residuals = yaml_doc_get(r->d, root, "residuals");
	const yaml_node_t *nodes = yaml_doc_get(r->d, root, "nodes");
	struct err err = {""};
	int e;

	if ((e = read_top(r, root)) < 0 || (classes && (e = read_classes(r, classes)) < 0))
		return e;
	if (!r->has_class)
		return yaml_doc_refuse(r->d, root, "no class of node: classes: or preset: NAME");
	r->f->has_size = nodes;
	if (!nodes && !n_nodes) {
		if ((e = count_attached(r, network, &n_nodes)) < 0)
			return e;
		r->f->has_size = n_nodes > 0;
		n_nodes = n_nodes ? n_nodes : 1;
	}
	if ((e = read_nodes(r, nodes, n_nodes)) < 0)
		return e;
	if (network && (e = read_network(r, network)) < 0)
		return e;
	if ((fit && (e = read_fit(r, fit)) < 0) ||
	    (residuals && (e = read_residuals(r, residuals)) < 0))
		return e;
	if (!r->has_network)
		return yaml_doc_refuse(r->d, root, "no network: network: or preset: NAME");
	r->f->gpus_per_node = gpus_per_node;
	for (size_t i = 0; !gpus_per_node && i < r->f->n_nodes_runs; i++) {
		uint32_t n = r->f->classes[r->f->nodes[i].class].n_gpus;

		if (i == 0 || n < r->f->gpus_per_node)
			r->f->gpus_per_node = n;
	}
	e = fabric_check(r->f, &err);
	if (e < 0)
		return e == -ENOMEM ? out_of_memory(r)
				    : yaml_doc_refuse(r->d, root, "%s", err.text);
	return links ? read_links(r, links) : 0;
}

int fabric_read_yaml(struct yaml_doc *d, uint32_t n_nodes, uint32_t gpus_per_node,
		     struct fabric **ret)
{
	struct reader r = {.d = d, .f = calloc(1, sizeof(struct fabric))};
	int e;

	if (!r.f)
		return out_of_memory(&r);
	if ((e = read_all(&r, n_nodes, gpus_per_node)) < 0) {
		fabric_free(r.f);
		return e;
	}
	*ret = r.f;
	return 0;
}
