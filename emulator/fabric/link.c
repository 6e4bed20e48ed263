/* See fabric.h: what a link carries. */
#include <math.h>
#include <stdlib.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

/* Bytes of NCCL's ops over a data sheet's: bus bandwidth of nccl-tests at large sizes, as
 * published. NVLink: 369 of 450 GB/s, H100 without NVLS (github.com/NVIDIA/nccl-tests/issues/309).
 * PCIe: copies between GPUs get 26 to 27 of 31.5 GB/s (gen 4), 54 of 63 (gen 5). InfiniBand, RoCE:
 * 392.7 of 400 GB/s (the same issue, rings on two nodes), 48.9 of 50 a NIC
 * (xxrjun/nccl-tests-cluster). EFA: 41.8 of 50 GB/s leave a p4de
 * (aws-samples/awsome-distributed-training), 46.5 of 50 a p5en. TCP that writes into GPU memory:
 * 188.5 of 200 GB/s, A3 Mega (dstackai/dstack). Slingshot: 92.6 of 100 GB/s, Alps, 4 nodes
 * (boeschf/nccl-benchmark-on-alps-2025). Sockets: TCP's part of an Ethernet frame of 1,538 bytes.
 */
double fabric_efficiency(enum fabric_medium medium, enum fabric_nic nic)
{
	static const double nics[] = {
		[FABRIC_INFINIBAND] = 0.98, [FABRIC_ROCE] = 0.98,      [FABRIC_EFA] = 0.85,
		[FABRIC_EFA2] = 0.93,       [FABRIC_SLINGSHOT] = 0.93, [FABRIC_SOCKET] = 0.94,
		[FABRIC_TCPX] = 0.94,
	};

	switch (medium) {
	case FABRIC_MEDIUM_NVLINK:
		return 0.82;
	case FABRIC_MEDIUM_PCIE:
		return 0.85;
	case FABRIC_MEDIUM_NIC:
	default:
		return nics[nic];
	}
}

double fabric_gpu_efficiency(const struct fabric_class *c)
{
	if (c->gpu_efficiency > 0)
		return c->gpu_efficiency;
	return fabric_efficiency(c->intra == FABRIC_PCIE ? FABRIC_MEDIUM_PCIE
							 : FABRIC_MEDIUM_NVLINK,
				 c->nic);
}

double fabric_nic_efficiency(const struct fabric_class *c)
{
	return c->nic_efficiency > 0 ? c->nic_efficiency
				     : fabric_efficiency(FABRIC_MEDIUM_NIC, c->nic);
}

static double gpu_rate(const struct fabric_class *c)
{
	return c->gpu_bytes_per_ns * fabric_gpu_efficiency(c);
}

static double nic_rate(const struct fabric_class *c)
{
	return c->nic_bytes_per_ns * fabric_nic_efficiency(c);
}

/* Of the NICs of @n nodes from @first on; @nic: of each, that one only; FABRIC_NIC_NEAR: all. */
static double nodes_rate(const struct fabric *f, uint64_t first, uint64_t n, uint32_t nic)
{
	uint64_t end = first + n < f->n_nodes ? first + n : f->n_nodes;
	double rate = 0;

	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		const struct fabric_nodes *run = &f->nodes[i];
		const struct fabric_class *c = &f->classes[run->class];
		uint64_t from = run->first > first ? run->first : first;
		uint64_t to = (uint64_t)run->first + run->n;
		double n_nics = nic == FABRIC_NIC_NEAR ? c->n_nics : nic < c->n_nics;

		to = to < end ? to : end;
		if (from < to)
			rate += (double)(to - from) * n_nics * nic_rate(c);
	}
	return rate;
}

static double leaf_rate(const struct fabric *f, uint32_t leaf)
{
	uint64_t per_leaf = f->network.nodes_per_leaf;
	uint32_t rails = leaf_rails(f);

	if (f->network.kind == FABRIC_RAIL)
		return nodes_rate(f, leaf / rails * per_leaf, per_leaf, leaf % rails) /
		       f->network.oversubscription;
	if (f->network.kind == FABRIC_DRAGONFLY) /* inside a group nothing is saved */
		return nodes_rate(f, leaf * per_leaf, per_leaf, FABRIC_NIC_NEAR);
	return nodes_rate(f, leaf * per_leaf, per_leaf, FABRIC_NIC_NEAR) /
	       f->network.oversubscription;
}

static double pod_rate(const struct fabric *f, uint32_t pod)
{
	uint64_t n = (uint64_t)f->network.nodes_per_leaf * f->network.leaves_per_pod;

	return nodes_rate(f, pod * n, n, FABRIC_NIC_NEAR) / f->network.oversubscription;
}

/* A group's cables are shared evenly between the other groups. */
static double group_rate(const struct fabric *f, uint32_t from, uint32_t to)
{
	uint64_t n = (uint64_t)f->network.nodes_per_leaf * f->network.leaves_per_pod;
	uint64_t n_groups = (f->n_nodes + n - 1) / n, full = n < f->n_nodes ? n : f->n_nodes;
	double rate = nodes_rate(f, from * n, full, FABRIC_NIC_NEAR);
	double other = nodes_rate(f, to * n, full, FABRIC_NIC_NEAR);

	rate = rate > other ? rate : other; /* the last one may lack nodes, but no cables */
	return rate / f->network.oversubscription / (double)(n_groups > 1 ? n_groups - 1 : 1);
}

static void original(const struct fabric *f, uint64_t link, struct fabric_link *ret)
{
	enum link_kind kind = link_kind(link);
	uint32_t a = link_a(link);
	const struct fabric_class *c = kind <= LINK_NIC ? fabric_class_of(f, a) : NULL;

	ret->latency_ns = f->network.hop_latency_ns;
	switch (kind) {
	case LINK_GPU:
		ret->latency_ns = c->gpu_latency_ns / 2;
		ret->bytes_per_ns = gpu_rate(c);
		break;
	case LINK_PCIE:
		ret->latency_ns = 0;
		ret->bytes_per_ns =
			c->pcie_bytes_per_ns * fabric_efficiency(FABRIC_MEDIUM_PCIE, c->nic);
		break;
	case LINK_NIC:
		ret->latency_ns = f->network.latency_ns / 2;
		ret->bytes_per_ns = nic_rate(c);
		break;
	case LINK_LEAF: /* up from a router and down at another there is one switch more */
		if (f->network.kind == FABRIC_DRAGONFLY && link_direction(link) == LINK_UP)
			ret->latency_ns = 0;
		ret->bytes_per_ns = leaf_rate(f, a);
		break;
	case LINK_POD:
		ret->bytes_per_ns = pod_rate(f, a);
		break;
	case LINK_GROUP: /* a router at either end */
		ret->latency_ns *= 2;
		ret->bytes_per_ns = group_rate(f, a, link_b(link));
		break;
	case LINK_CABLE:
	case LINK_KINDS:
	default:
		ret->latency_ns = f->cables[a].latency_ns;
		ret->bytes_per_ns = f->cables[a].bytes_per_ns;
		break;
	}
}

double fabric_link_efficiency(const struct fabric *f, uint64_t link)
{
	const struct fabric_class *c = fabric_class_of(f, link_a(link));

	switch (link_kind(link)) {
	case LINK_GPU:
		return fabric_gpu_efficiency(c);
	case LINK_PCIE:
		return fabric_efficiency(FABRIC_MEDIUM_PCIE, c->nic);
	case LINK_NIC:
		return fabric_nic_efficiency(c);
	case LINK_LEAF:
	case LINK_POD:
	case LINK_GROUP:
		return fabric_nic_efficiency(&f->classes[0]);
	case LINK_CABLE: /* has what the file says */
	case LINK_KINDS:
	default:
		return 1;
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = ((const struct fabric_change *)b)->link;

	return (x > y) - (x < y);
}

uint32_t link_cables(const struct fabric *f, uint32_t leaf)
{
	double cable = nic_rate(&f->classes[0]), n = cable > 0 ? leaf_rate(f, leaf) / cable : 1;

	return n >= 1.5 ? (uint32_t)lround(n) : 1;
}

void fabric_link(const struct fabric *f, uint64_t link, struct fabric_link *ret)
{
	bool is_cable = link_kind(link) == LINK_LEAF && link_b(link);
	uint64_t all =
		is_cable ? link_number(LINK_LEAF, link_a(link), 0, link_direction(link)) : link;
	const struct fabric_change *c =
		f->n_changes ? bsearch(&all, f->changes, f->n_changes, sizeof(*c), compare) : NULL;

	original(f, all, ret);
	if (c && c->latency_ns >= 0)
		ret->latency_ns = c->latency_ns;
	if (c && c->bytes_per_ns >= 0)
		ret->bytes_per_ns = c->bytes_per_ns * fabric_link_efficiency(f, all);
	if (is_cable)
		ret->bytes_per_ns /= link_cables(f, link_a(link));
}

double link_rate(const struct fabric *f, enum link_kind kind, uint32_t a, uint32_t b,
		 unsigned direction)
{
	struct fabric_link l;

	fabric_link(f, link_number(kind, a, b, direction), &l);
	return l.bytes_per_ns;
}

double link_row_rate(const struct fabric *f, uint32_t row, uint32_t nics, unsigned direction)
{
	uint32_t rails = leaf_rails(f);
	double sum = 0;

	for (uint32_t i = 0; i < rails; i++)
		if (rails == 1 || nics & 1u << i)
			sum += link_rate(f, LINK_LEAF, row * rails + i, 0, direction);
	return sum;
}
