/* See fabric.h: what must hold of a fabric. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

#define RATE_MAX 1e9     /* bytes/ns */
#define LATENCY_MAX 1e12 /* ns: a quarter of an hour */
#define RANKS_MAX (1u << 24)
#define EFFICIENCY_MAX 4
#define RESIDUAL_MAX 10.0

bool fabric_is_rate(double bytes_per_ns)
{
	return bytes_per_ns >= 1e-9 && bytes_per_ns <= RATE_MAX;
}

bool fabric_is_latency(double ns)
{
	return ns >= 0 && ns <= LATENCY_MAX;
}

static int check_class(const struct fabric *f, const struct fabric_class *c, struct err *err)
{
	if (!c->n_gpus || c->n_gpus > FABRIC_GPUS_MAX)
		return err_set(err, EINVAL, "class %s: %u GPUs a node; 1 to %u are possible",
			       c->name, c->n_gpus, FABRIC_GPUS_MAX);
	if (f->gpus_per_node > c->n_gpus)
		return err_set(err, EINVAL,
			       "class %s: a node has %u GPUs, the virtual cluster wants %u of each "
			       "node",
			       c->name, c->n_gpus, f->gpus_per_node);
	if (!c->sm)
		return err_set(
			err, EINVAL,
			"class %s: sm is missing: ten times the compute capability, such as 90",
			c->name);
	if (c->n_nics > FABRIC_NICS_MAX)
		return err_set(err, EINVAL, "class %s: %u NICs a node; at most %u are possible",
			       c->name, c->n_nics, FABRIC_NICS_MAX);
	if (!c->n_nics && (f->n_nodes_runs > 1 || f->n_nodes > c->domain_nodes))
		return err_set(
			err, EINVAL,
			"class %s: a node without NIC reaches no other one: give it nics, or "
			"--inter 8x400Gbps",
			c->name);
	if (!fabric_is_rate(c->gpu_bytes_per_ns) ||
	    (c->n_nics && !fabric_is_rate(c->nic_bytes_per_ns)) ||
	    (c->pcie_bytes_per_ns != 0 && !fabric_is_rate(c->pcie_bytes_per_ns)))
		return err_set(err, EINVAL,
			       "class %s: a bandwidth must be more than 1 B/s and less than 1 EB/s",
			       c->name);
	if (!(c->gpu_efficiency >= 0 && c->gpu_efficiency <= EFFICIENCY_MAX) ||
	    !(c->nic_efficiency >= 0 && c->nic_efficiency <= EFFICIENCY_MAX))
		return err_set(err, EINVAL, "class %s: an efficiency must be 0 to %d", c->name,
			       EFFICIENCY_MAX);
	if (!fabric_is_latency(c->gpu_latency_ns))
		return err_set(err, EINVAL, "class %s: a latency must be 0 to 1000s", c->name);
	if (!c->domain_nodes)
		return err_set(err, EINVAL, "class %s: domain_nodes: at least 1", c->name);
	if (c->domain_nodes > 1 && c->intra != FABRIC_NVSWITCH)
		return err_set(err, EINVAL,
			       "class %s: only an NVSwitch joins the GPUs of several nodes",
			       c->name);
	for (uint32_t i = 0; i < c->n_nics; i++)
		if (c->nic_gpu[i] >= c->n_gpus || (i && c->nic_gpu[i] < c->nic_gpu[i - 1]))
			return err_set(err, EINVAL,
				       "class %s: NIC %u is near to GPU %u; GPUs are 0 to %u, in "
				       "ascending order",
				       c->name, i, c->nic_gpu[i], c->n_gpus - 1);
	return 0;
}

static int check_residuals(const struct fabric *f, struct err *err)
{
	for (size_t i = 0; i < f->n_residuals; i++) {
		const struct fabric_residual *one = &f->residuals[i], *last = i ? one - 1 : NULL;

		if (!(one->factor >= 1 / RESIDUAL_MAX && one->factor <= RESIDUAL_MAX))
			return err_set(err, EINVAL, "residuals: a factor must be %g to %g",
				       1 / RESIDUAL_MAX, RESIDUAL_MAX);
		if (!(one->bytes > 0 && one->bytes <= 1e15) ||
		    (last && (one->kind < last->kind ||
			      (one->kind == last->kind && !(one->bytes > last->bytes)))))
			return err_set(
				err, EINVAL,
				"residuals: %s of %g bytes: bytes must be above 0, and rise in "
				"the order of allreduce, allgather, reducescatter, ...",
				coll_kind_name(one->kind), one->bytes);
	}
	return 0;
}

static int check_nodes(const struct fabric *f, struct err *err)
{
	uint64_t next = 0;
	uint32_t used = 0; /* classes, as bits */

	if (!f->n_nodes || !f->gpus_per_node || (uint64_t)f->n_nodes * f->gpus_per_node > RANKS_MAX)
		return err_set(err, EINVAL, "%u nodes of %u GPUs: 1 to %u ranks are possible",
			       f->n_nodes, f->gpus_per_node, RANKS_MAX);
	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		const struct fabric_nodes *run = &f->nodes[i];

		if (run->first != next || !run->n || run->class >= f->n_classes)
			return err_set(err, EINVAL, "node %u has no class",
				       (uint32_t)(run->first > next ? next : run->first));
		next += run->n;
		used |= 1u << run->class;
	}
	if (next != f->n_nodes)
		return err_set(err, EINVAL, "%u nodes, but classes for %llu", f->n_nodes,
			       (unsigned long long)next);
	for (uint32_t i = 0; i < f->n_classes; i++)
		if (!(used & 1u << i))
			return err_set(err, EINVAL,
				       "class %s has no nodes: name it under nodes, or take it out",
				       f->classes[i].name);
	return 0;
}

static int check_network(const struct fabric *f, struct err *err)
{
	const struct fabric_network *n = &f->network;
	bool has_leaves = n->kind != FABRIC_SWITCH && n->kind != FABRIC_CABLES;

	if (!fabric_is_latency(n->latency_ns) || !fabric_is_latency(n->hop_latency_ns))
		return err_set(err, EINVAL, "network: a latency must be 0 to 1000s");
	if (has_leaves && (!n->nodes_per_leaf || n->nodes_per_leaf > RANKS_MAX))
		return err_set(err, EINVAL,
			       "network: how many nodes has a leaf? nodes_per_leaf: N");
	if ((n->kind == FABRIC_FAT_TREE || n->kind == FABRIC_DRAGONFLY) &&
	    (!n->leaves_per_pod || n->leaves_per_pod > RANKS_MAX))
		return err_set(err, EINVAL,
			       "network: how many leaves has a pod? leaves_per_pod: N");
	if (has_leaves && !(n->oversubscription >= 1 && n->oversubscription <= 1e6))
		return err_set(err, EINVAL, "network: oversubscription must be 1 or more");
	if (!has_leaves && n->ecmp)
		return err_set(err, EINVAL,
			       "network: ecmp is of networks whose leaves have cables up: rail, "
			       "leaf-spine, fat-tree, dragonfly");
	if (n->kind == FABRIC_DRAGONFLY && leaf_pod_count(f) > FABRIC_GROUPS_MAX)
		return err_set(
			err, EINVAL,
			"network: %u groups; at most %u are possible: take more nodes_per_leaf "
			"or leaves_per_pod",
			leaf_pod_count(f), FABRIC_GROUPS_MAX);
	return 0;
}

/* The cables of each switch: list[start[i]] to list[start[i + 1] - 1]. */
struct ends {
	uint32_t *start, *list, *queue; /* owned */
};

static int ends_init(const struct fabric *f, struct ends *e)
{
	e->start = calloc(f->n_switches + 2, sizeof(*e->start));
	e->list = calloc(2 * f->n_cables + 1, sizeof(*e->list));
	e->queue = calloc(f->n_switches, sizeof(*e->queue));
	if (!e->start || !e->list || !e->queue)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_cables; i++) {
		e->start[f->cables[i].from + 2]++;
		e->start[f->cables[i].to + 2]++;
	}
	for (uint32_t i = 2; i < f->n_switches + 2; i++)
		e->start[i] += e->start[i - 1];
	for (uint32_t i = 0; i < f->n_cables; i++) { /* start[i + 1] moves on to start of i + 1 */
		e->list[e->start[f->cables[i].from + 1]++] = i;
		e->list[e->start[f->cables[i].to + 1]++] = i;
	}
	return 0;
}

static void ends_deinit(struct ends *e)
{
	free(e->start);
	free(e->list);
	free(e->queue);
}

/* Breadth first from @end, backwards: cables have both directions. */
static void ways_to(struct fabric *f, uint32_t end, const struct ends *e)
{
	size_t n = f->n_switches, first = 0, last = 1;

	e->queue[0] = end;
	while (first < last) {
		uint32_t at = e->queue[first++];

		for (uint32_t i = e->start[at]; i < e->start[at + 1]; i++) {
			const struct fabric_cable *c = &f->cables[e->list[i]];
			uint32_t from = c->from == at ? c->to : c->from;

			if (from == end || f->next_cable[from * n + end] != UINT32_MAX)
				continue;
			f->next_cable[from * n + end] = e->list[i];
			e->queue[last++] = from;
		}
	}
}

/* How many cables the way from @at to @end has; more than a path can have: UINT32_MAX. */
static uint32_t way_length(const struct fabric *f, uint32_t at, uint32_t end)
{
	uint32_t n = 0;

	for (; at != end && n <= FABRIC_PATH_MAX; n++) {
		uint32_t i = f->next_cable[(size_t)at * f->n_switches + end];

		if (i == UINT32_MAX)
			return UINT32_MAX;
		at = f->cables[i].from == at ? f->cables[i].to : f->cables[i].from;
	}
	return n;
}

static int check_ways(const struct fabric *f, struct err *err)
{
	/* of a path, what is in the two nodes: at most four links each */
	const uint32_t most = FABRIC_PATH_MAX - 8;
	uint32_t node_of[FABRIC_SWITCHES_MAX]; /* one of each switch's */

	memset(node_of, 0xff, sizeof(node_of));
	for (uint32_t node = 0; node < f->n_nodes; node++)
		node_of[f->node_switch[node]] = node;
	for (uint32_t from = 0; from < f->n_switches; from++)
		for (uint32_t to = 0; to < f->n_switches; to++) {
			uint32_t a = node_of[from], b = node_of[to], n;

			n = a != UINT32_MAX && b != UINT32_MAX ? way_length(f, from, to) : 0;
			if (n == UINT32_MAX)
				return err_set(err, EINVAL,
					       "there is no way from node%u to node%u: a cable is "
					       "missing",
					       a, b);
			if (n > most)
				return err_set(err, EINVAL,
					       "from node%u to node%u are more than %u cables; "
					       "that is too far for a path",
					       a, b, most);
		}
	return 0;
}

static int check_cables(struct fabric *f, struct err *err)
{
	struct ends e = {0};
	int r;

	if (!f->n_switches || f->n_switches > FABRIC_SWITCHES_MAX || !f->node_switch)
		return err_set(err, EINVAL, "network: %u switches; 1 to %u are possible",
			       f->n_switches, FABRIC_SWITCHES_MAX);
	for (uint32_t i = 0; i < f->n_nodes; i++)
		if (f->node_switch[i] >= f->n_switches)
			return err_set(err, EINVAL, "node%u has no cable to a switch", i);
	for (size_t i = 0; i < f->n_cables; i++) {
		const struct fabric_cable *c = &f->cables[i];

		if (c->from >= f->n_switches || c->to >= f->n_switches || c->from == c->to)
			return err_set(err, EINVAL,
				       "cable sw%u-sw%u: it must join two switches of %u", c->from,
				       c->to, f->n_switches);
		if (!fabric_is_rate(c->bytes_per_ns) || !fabric_is_latency(c->latency_ns))
			return err_set(err, EINVAL,
				       "cable sw%u-sw%u: bandwidth or latency is impossible",
				       c->from, c->to);
	}
	free(f->next_cable);
	f->next_cable = malloc((size_t)f->n_switches * f->n_switches * sizeof(*f->next_cable));
	r = f->next_cable ? ends_init(f, &e) : -ENOMEM;
	if (r == 0) {
		memset(f->next_cable, 0xff,
		       (size_t)f->n_switches * f->n_switches * sizeof(*f->next_cable));
		for (uint32_t i = 0; i < f->n_switches; i++)
			ways_to(f, i, &e);
	}
	ends_deinit(&e);
	return r < 0 ? err_set(err, ENOMEM, "out of memory for the fabric's cables")
		     : check_ways(f, err);
}

/* Links that were changed, before NICs were given otherwise. */
static int check_changes(const struct fabric *f, struct err *err)
{
	for (size_t i = 0; i < f->n_changes; i++) {
		uint64_t link = f->changes[i].link;
		char name[64];

		if (link_kind(link) == LINK_NIC &&
		    link_b(link) >= fabric_class_of(f, link_a(link))->n_nics)
			return err_set(err, EINVAL, "%s is changed, but there is no such NIC",
				       fabric_link_name(f, link, name, sizeof(name)));
	}
	return 0;
}

int fabric_check(struct fabric *f, struct err *err)
{
	int r = check_nodes(f, err);

	for (uint32_t i = 0; r == 0 && i < f->n_classes; i++)
		r = check_class(f, &f->classes[i], err);
	if (r == 0)
		r = check_residuals(f, err);
	if (r == 0)
		r = check_network(f, err);
	if (r == 0)
		r = check_changes(f, err);
	return r == 0 && f->network.kind == FABRIC_CABLES ? check_cables(f, err) : r;
}
