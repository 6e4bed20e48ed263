/* See fabric.h: the links of a message. */
#include <errno.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

/* Where a message meets the network. */
struct door {
	uint32_t node, gpu, nic; /* the GPU next to the NIC */
	bool is_far;             /* from the rank */
};

struct way {
	uint64_t *links;
	int n;
};

static int add(struct way *w, enum link_kind kind, uint32_t a, uint32_t b, unsigned direction)
{
	if (w->n == FABRIC_PATH_MAX)
		return -EHOSTUNREACH;
	w->links[w->n++] = link_number(kind, a, b, direction);
	return 0;
}

/* The door that NIC @nic is to rank @rank. Nodes of a domain count their NICs on. */
static void find_door(const struct fabric *f, uint32_t rank, uint32_t nic, struct door *ret)
{
	uint32_t node = rank / f->gpus_per_node, local = rank % f->gpus_per_node, first;
	const struct fabric_class *c = fabric_class_of(f, node);

	*ret = (struct door){.node = node, .gpu = local};
	if (nic == FABRIC_NIC_NEAR) {
		ret->nic = fabric_near_nic(c, local, 0);
		return;
	}
	if (c->domain_nodes > 1) {
		first = fabric_domain(f, rank);
		nic %= fabric_domain_nodes(f, first) * c->n_nics;
		ret->node = first + nic / c->n_nics;
	}
	ret->nic = nic % c->n_nics;
	ret->is_far = ret->node != node || !(fabric_near_nics(c, local) & 1u << ret->nic);
	if (ret->is_far && c->intra != FABRIC_PCIE && c->nic_gpu[ret->nic] < f->gpus_per_node)
		ret->gpu = c->nic_gpu[ret->nic];
	else
		ret->is_far = false; /* through the host */
}

static void leave_node(const struct fabric *f, uint32_t src, const struct door *d, struct way *w)
{
	const struct fabric_class *c = fabric_class_of(f, d->node);
	uint32_t node = src / f->gpus_per_node, local = src % f->gpus_per_node;

	if (d->is_far) {
		add(w, LINK_GPU, node, local, LINK_OUT);
		add(w, LINK_GPU, d->node, d->gpu, LINK_IN);
	}
	if (c->intra == FABRIC_PCIE)
		add(w, LINK_GPU, node, local, LINK_OUT);
	else if (c->pcie_bytes_per_ns > 0)
		add(w, LINK_PCIE, d->node, d->gpu, LINK_OUT);
	add(w, LINK_NIC, d->node, d->nic, LINK_OUT);
}

static int enter_node(const struct fabric *f, uint32_t dst, const struct door *d, struct way *w)
{
	const struct fabric_class *c = fabric_class_of(f, d->node);
	uint32_t node = dst / f->gpus_per_node, local = dst % f->gpus_per_node;
	int r = add(w, LINK_NIC, d->node, d->nic, LINK_IN);

	if (r == 0 && c->intra == FABRIC_PCIE)
		return add(w, LINK_GPU, node, local, LINK_IN);
	if (r == 0 && c->pcie_bytes_per_ns > 0)
		r = add(w, LINK_PCIE, d->node, d->gpu, LINK_IN);
	if (r == 0 && d->is_far)
		r = add(w, LINK_GPU, d->node, d->gpu, LINK_OUT);
	if (r == 0 && d->is_far)
		r = add(w, LINK_GPU, node, local, LINK_IN);
	return r;
}

static int cross_cables(const struct fabric *f, uint32_t from, uint32_t to, struct way *w)
{
	uint32_t at = f->node_switch[from], end = f->node_switch[to];

	while (at != end) {
		uint32_t i = f->next_cable[(size_t)at * f->n_switches + end];
		bool is_back = i != UINT32_MAX && f->cables[i].to == at;

		if (i == UINT32_MAX || add(w, LINK_CABLE, i, 0, is_back ? LINK_IN : LINK_OUT) < 0)
			return -EHOSTUNREACH;
		at = is_back ? f->cables[i].from : f->cables[i].to;
	}
	return 0;
}

/* From the switch that @from is at to that of @to. */
static int cross_network(const struct fabric *f, const struct door *from, const struct door *to,
			 struct way *w)
{
	uint32_t leaf, other, pod, other_pod;

	if (f->network.kind == FABRIC_SWITCH)
		return 0;
	if (f->network.kind == FABRIC_CABLES)
		return cross_cables(f, from->node, to->node, w);
	leaf = leaf_of(f, from->node, from->nic);
	other = leaf_of(f, to->node, to->nic);
	if (leaf == other)
		return 0;
	add(w, LINK_LEAF, leaf, 0, LINK_UP);
	if (f->network.kind == FABRIC_FAT_TREE || f->network.kind == FABRIC_DRAGONFLY) {
		pod = leaf / f->network.leaves_per_pod;
		other_pod = other / f->network.leaves_per_pod;
		if (pod != other_pod && f->network.kind == FABRIC_DRAGONFLY)
			add(w, LINK_GROUP, pod, other_pod, LINK_OUT);
		else if (pod != other_pod) {
			add(w, LINK_POD, pod, 0, LINK_UP);
			add(w, LINK_POD, other_pod, 0, LINK_DOWN);
		}
	}
	return add(w, LINK_LEAF, other, 0, LINK_DOWN);
}

int fabric_path(const struct fabric *f, uint32_t src, uint32_t dst, uint32_t nic,
		uint64_t ret_links[FABRIC_PATH_MAX])
{
	struct way w = {.links = ret_links};
	struct door from, to;

	if (src == dst)
		return 0;
	if (fabric_domain(f, src) == fabric_domain(f, dst)) {
		add(&w, LINK_GPU, src / f->gpus_per_node, src % f->gpus_per_node, LINK_OUT);
		add(&w, LINK_GPU, dst / f->gpus_per_node, dst % f->gpus_per_node, LINK_IN);
		return w.n;
	}
	if (!fabric_class_of(f, src / f->gpus_per_node)->n_nics ||
	    !fabric_class_of(f, dst / f->gpus_per_node)->n_nics)
		return -EHOSTUNREACH;
	find_door(f, src, nic, &from);
	find_door(f, dst, nic, &to);
	leave_node(f, src, &from, &w);
	if (cross_network(f, &from, &to, &w) < 0 || enter_node(f, dst, &to, &w) < 0)
		return -EHOSTUNREACH;
	return w.n;
}
