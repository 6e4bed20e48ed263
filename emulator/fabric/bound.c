/* See fabric.h. Each set of ranks that links cut off from the others (one rank, a domain, a leaf, a
 * pod) must send and receive so many bytes at least, whatever the algorithm, where both sides may
 * combine and copy at will. Over all sets of a kind together an all-reduce sends more: N - 1
 * partial sums until one set has the sum, N - 1 copies of it; no switch between domains adds. An
 * NVSwitch with NVLS does: for its GPUs only the first of the two holds.
 *
 * Not looked at: which of its links a set uses, and the cables of FABRIC_CABLES. */
#include <math.h>
#include <stdio.h>

#include "fabric/census.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"

struct op {
	const struct fabric *f;
	enum coll_kind kind;
	double bytes, n_ranks;
	uint32_t n_domains;
	uint32_t root; /* world rank */
	double ns;     /* the bound so far */
	char *where;
	size_t size;
};

/* A set of ranks, and what joins it to the others. */
struct set {
	double n_ranks;
	double out, in; /* bytes/ns */
	bool has_root;
};

/* Sets of one kind, all that there are. */
struct sum {
	double n_sets, bytes, bytes_in, out, in;
};

static void raise(struct op *op, double ns, const char *where)
{
	if (!(ns > op->ns))
		return;
	op->ns = ns;
	snprintf(op->where, op->size, "%s", where);
}

static void need(const struct op *op, const struct set *s, double *ret_out, double *ret_in)
{
	double others = op->n_ranks - s->n_ranks, b = op->bytes;
	double out = b, in = b;

	switch (op->kind) {
	case COLL_ALLGATHER:
		out = b * s->n_ranks;
		in = b * others;
		break;
	case COLL_REDUCESCATTER:
		out = b * others;
		in = b * s->n_ranks;
		break;
	case COLL_ALLTOALL:
		out = in = b * s->n_ranks * others;
		break;
	case COLL_BROADCAST:
		out = s->has_root ? b : 0;
		in = s->has_root ? 0 : b;
		break;
	case COLL_REDUCE:
		out = s->has_root ? 0 : b;
		in = s->has_root ? b : 0;
		break;
	case COLL_GATHER:
		out = s->has_root ? 0 : b * s->n_ranks;
		in = s->has_root ? b * others : 0;
		break;
	case COLL_SCATTER:
		out = s->has_root ? b * others : 0;
		in = s->has_root ? 0 : b * s->n_ranks;
		break;
	case COLL_ALLREDUCE:
	case COLL_SENDRECV: /* some rank sends or receives so much: see bound_all() */
	case COLL_KINDS:
	default:
		break;
	}
	*ret_out = others > 0 ? out : 0;
	*ret_in = others > 0 ? in : 0;
}

static void cut(struct op *op, const struct set *s, const char *where, struct sum *sum)
{
	double out, in;

	need(op, s, &out, &in);
	raise(op, out / s->out, where);
	raise(op, in / s->in, where);
	sum->n_sets++;
	sum->bytes += out;
	sum->bytes_in += in;
	sum->out += s->out;
	sum->in += s->in;
}

/* Every byte that a set receives another has sent. */
static void cut_all(struct op *op, const struct sum *sum, const char *where)
{
	double bytes = fmax(sum->bytes, sum->bytes_in);

	if (op->kind == COLL_ALLREDUCE)
		bytes = 2 * (sum->n_sets - 1) * op->bytes;
	if (sum->n_sets < 2)
		return;
	raise(op, bytes / sum->out, where);
	raise(op, bytes / sum->in, where);
}

static struct fabric_link link_of(const struct fabric *f, enum link_kind kind, uint32_t a,
				  uint32_t b, unsigned direction)
{
	struct fabric_link l;

	fabric_link(f, link_number(kind, a, b, direction), &l);
	return l;
}

static double rate(const struct fabric *f, enum link_kind kind, uint32_t a, uint32_t b,
		   unsigned direction)
{
	return link_of(f, kind, a, b, direction).bytes_per_ns;
}

/* Bytes/ns of the NICs @bits of a node. */
static double nics_rate(const struct fabric *f, uint32_t node, uint32_t bits, unsigned direction)
{
	double sum = 0;

	for (; bits; bits &= bits - 1)
		sum += rate(f, LINK_NIC, node, (uint32_t)__builtin_ctz(bits), direction);
	return sum;
}

/* How fast a rank reaches NICs without another's help. */
static double door_rate(const struct fabric *f, uint32_t node, uint32_t local, unsigned direction)
{
	const struct fabric_class *c = fabric_class_of(f, node);
	double nics = nics_rate(f, node, fabric_near_nics(c, local), direction);

	if (c->intra == FABRIC_PCIE)
		return fmin(nics, rate(f, LINK_GPU, node, local, direction));
	if (c->pcie_bytes_per_ns > 0)
		return fmin(nics, rate(f, LINK_PCIE, node, local, direction));
	return nics;
}

/* All that a rank can send or receive: where @has_peers, to its domain; where the op has several
 * domains, to NICs. */
static double rank_rate(const struct op *op, uint32_t rank, bool has_peers, unsigned direction)
{
	const struct fabric *f = op->f;
	uint32_t node = rank / f->gpus_per_node, local = rank % f->gpus_per_node;
	double port = rate(f, LINK_GPU, node, local, direction);
	double door = op->n_domains > 1 ? door_rate(f, node, local, direction) : 0;

	if (fabric_class_of(f, node)->intra == FABRIC_PCIE && has_peers)
		return port; /* on the way to its NIC, too */
	return (has_peers ? port : 0) + door;
}

static uint32_t ranks_of_domain(const struct op *op, const struct census *c, uint32_t rank)
{
	struct census_node all;

	census_domain(op->f, c, fabric_domain(op->f, rank), &all);
	return all.n_ranks;
}

static void bound_ranks(struct op *op, const struct membership *m, const struct census *c,
			double *ret_most)
{
	struct sum sum = {0};
	bool has_nvls = false;
	char where[96];

	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i), node = rank / op->f->gpus_per_node;
		bool has_peers = op->n_domains == 1 || ranks_of_domain(op, c, rank) > 1;
		struct set s = {.n_ranks = 1,
				.has_root = rank == op->root,
				.out = rank_rate(op, rank, has_peers, LINK_OUT),
				.in = rank_rate(op, rank, has_peers, LINK_IN)};

		*ret_most = fmax(*ret_most, fmax(s.out, s.in));
		snprintf(where, sizeof(where), "node%u.gpu%u", node, rank % op->f->gpus_per_node);
		cut(op, &s, where, &sum);
		has_nvls = has_nvls || fabric_class_of(op->f, node)->has_nvls;
	}
	if (!has_nvls)
		cut_all(op, &sum, "the GPUs' ports");
}

/* The NICs of a domain that are near to ranks of the op. */
static void bound_domains(struct op *op, const struct census *c)
{
	struct sum sum = {0};
	struct census_node all;
	char where[96];

	for (uint32_t at = c->first; (at = census_domain(op->f, c, at, &all)) != UINT32_MAX;) {
		uint32_t n = fabric_domain_nodes(op->f, at);
		struct set s = {.n_ranks = all.n_ranks,
				.has_root = op->root / op->f->gpus_per_node - at < n};

		for (uint32_t node = at; node < at + n; node++) {
			uint32_t nics = c->nodes[node - c->first].nics;

			s.out += nics_rate(op->f, node, nics, LINK_OUT);
			s.in += nics_rate(op->f, node, nics, LINK_IN);
		}
		snprintf(where, sizeof(where),
			 n > 1 ? "the NICs of node%u to node%u" : "the NICs of node%u", at,
			 at + n - 1);
		cut(op, &s, where, &sum);
		at += n;
	}
	cut_all(op, &sum, "the NICs of all nodes");
}

static double leaves_rate(const struct fabric *f, uint32_t row, unsigned direction)
{
	uint32_t rails = leaf_rails(f);
	double sum = 0;

	for (uint32_t i = 0; i < rails; i++)
		sum += rate(f, LINK_LEAF, row * rails + i, 0, direction);
	return sum;
}

static double pod_rate(const struct fabric *f, uint32_t pod, unsigned direction)
{
	uint32_t n = leaf_pod_count(f);
	double sum = 0;

	if (f->network.kind == FABRIC_FAT_TREE)
		return rate(f, LINK_POD, pod, 0, direction);
	if (!f->n_changes && n > 1)
		return (n - 1) * rate(f, LINK_GROUP, pod, pod ? 0 : 1, LINK_OUT);
	for (uint32_t i = 0; i < n; i++) {
		bool is_out = direction == LINK_OUT;

		sum += i == pod ? 0 : rate(f, LINK_GROUP, is_out ? pod : i, is_out ? i : pod, 0);
	}
	return sum;
}

/* Leaves of a row, or pods: sets of @n_nodes nodes. */
static void bound_leaves(struct op *op, const struct census *c, uint64_t n_nodes, bool is_pod)
{
	const struct fabric *f = op->f;
	uint64_t end = (uint64_t)c->first + c->n;
	struct sum sum = {0};
	char where[96];

	for (uint64_t at = c->first; at < end; at = (at / n_nodes + 1) * n_nodes) {
		uint64_t stop = (at / n_nodes + 1) * n_nodes, row = at / n_nodes;
		struct set s = {.has_root = op->root / f->gpus_per_node / n_nodes == row};

		for (uint64_t i = at; i < stop && i < end; i++)
			s.n_ranks += c->nodes[i - c->first].n_ranks;
		if (s.n_ranks == 0 || s.n_ranks == op->n_ranks)
			continue;
		s.out = is_pod ? pod_rate(f, (uint32_t)row, LINK_OUT)
			       : leaves_rate(f, (uint32_t)row, LINK_OUT);
		s.in = is_pod ? pod_rate(f, (uint32_t)row, LINK_IN)
			      : leaves_rate(f, (uint32_t)row, LINK_IN);
		snprintf(where, sizeof(where), "%s of node%llu to node%llu",
			 is_pod ? "the pod" : "the leaves", (unsigned long long)(row * n_nodes),
			 (unsigned long long)(stop < f->n_nodes ? stop : f->n_nodes) - 1);
		cut(op, &s, where, &sum);
	}
	cut_all(op, &sum, is_pod ? "the pods" : "the leaves");
}

/* Does each leaf have whole domains only? */
static bool leaves_are_cuts(const struct fabric *f)
{
	if (!leaf_count(f))
		return false;
	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		uint32_t n = f->classes[f->nodes[i].class].domain_nodes;

		if (n > 1 && (f->nodes[i].first % f->network.nodes_per_leaf ||
			      f->network.nodes_per_leaf % n))
			return false;
	}
	return true;
}

/* Least latency of the NICs of a domain. */
static double door_latency(const struct fabric *f, const struct census *c, uint32_t domain,
			   unsigned direction)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < fabric_domain_nodes(f, domain); i++) {
		uint32_t bits = c->nodes[domain + i - c->first].nics;

		for (; bits; bits &= bits - 1)
			least = fmin(least, link_of(f, LINK_NIC, domain + i,
						    (uint32_t)__builtin_ctz(bits), direction)
						    .latency_ns);
	}
	return least;
}

/* Least latency of the leaves of a row. */
static double row_latency(const struct fabric *f, uint32_t node, unsigned direction)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < leaf_rails(f); i++)
		least = fmin(least,
			     link_of(f, LINK_LEAF, leaf_of(f, node, i), 0, direction).latency_ns);
	return least;
}

/* Between the switches of two domains at least. */
static double network_latency(const struct fabric *f, uint32_t from, uint32_t to)
{
	uint64_t links[FABRIC_PATH_MAX];
	double sum = 0;
	int n;

	if (!leaves_are_cuts(f))
		return 0;
	if (from / f->network.nodes_per_leaf == to / f->network.nodes_per_leaf)
		return 0;
	n = fabric_path(f, from * f->gpus_per_node, to * f->gpus_per_node, FABRIC_NIC_NEAR, links);
	for (int i = 0; i < n; i++) {
		enum link_kind kind = link_kind(links[i]);
		struct fabric_link l;

		fabric_link(f, links[i], &l);
		if (kind == LINK_POD || kind == LINK_GROUP)
			sum += l.latency_ns;
	}
	return sum + row_latency(f, from, LINK_UP) + row_latency(f, to, LINK_DOWN);
}

/* What a byte from @src to @dst takes at least, through whichever NICs and ranks. */
static void bound_pair(struct op *op, const struct census *c, uint32_t src, uint32_t dst)
{
	const struct fabric *f = op->f;
	uint32_t from = fabric_domain(f, src), to = fabric_domain(f, dst);
	char where[96], *end = where + sizeof(where);
	uint32_t n = f->gpus_per_node;
	double ns;

	if (src == dst)
		return;
	if (from == to)
		ns = link_of(f, LINK_GPU, src / n, src % n, LINK_OUT).latency_ns +
		     link_of(f, LINK_GPU, dst / n, dst % n, LINK_IN).latency_ns;
	else
		ns = door_latency(f, c, from, LINK_OUT) + network_latency(f, from, to) +
		     door_latency(f, c, to, LINK_IN);
	snprintf(where, (size_t)(end - where), "latency from node%u to node%u", src / n, dst / n);
	raise(op, ns, where);
}

/* Pairs of ranks of which one must hear of the other: the first and the last, and where links were
 * changed, that of the domain that is hardest to reach. */
static void bound_latency(struct op *op, const struct membership *m, const struct census *c)
{
	uint32_t low = UINT32_MAX, high = 0, far = UINT32_MAX, ends[4];
	bool is_out = op->kind == COLL_BROADCAST || op->kind == COLL_SCATTER;
	bool is_in = op->kind == COLL_REDUCE || op->kind == COLL_GATHER;
	double worst = 0;

	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i), domain = fabric_domain(op->f, rank);
		double ns = op->f->n_changes && op->n_domains > 1
				    ? door_latency(op->f, c, domain, LINK_OUT) +
					      door_latency(op->f, c, domain, LINK_IN)
				    : 0;

		low = rank < low ? rank : low;
		high = rank > high ? rank : high;
		far = ns > worst ? rank : far;
		worst = fmax(worst, ns);
	}
	ends[0] = is_out || is_in ? op->root : low;
	ends[1] = high;
	ends[2] = low;
	ends[3] = far == UINT32_MAX ? low : far;
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 4; k++) {
			bool is_needed =
				(!is_out || ends[i] == op->root) && (!is_in || ends[k] == op->root);

			if (is_needed)
				bound_pair(op, c, ends[i], ends[k]);
		}
}

static void bound_all(struct op *op, const struct membership *m, const struct census *c)
{
	const struct fabric_network *n = &op->f->network;
	double most = 0;

	bound_ranks(op, m, c, &most);
	if (op->kind == COLL_SENDRECV) { /* nobody knows here who has the bytes */
		op->ns = 0;
		raise(op, op->bytes / most, "a GPU's ports");
		return;
	}
	if (op->n_domains > 1)
		bound_domains(op, c);
	if (op->n_domains > 1 && leaves_are_cuts(op->f)) {
		bound_leaves(op, c, n->nodes_per_leaf, false);
		if (leaf_pod_count(op->f) > 1)
			bound_leaves(op, c, (uint64_t)n->nodes_per_leaf * n->leaves_per_pod, true);
	}
	bound_latency(op, m, c);
}

double fabric_bound(const struct fabric *f, enum coll_kind kind, uint64_t bytes, uint32_t root,
		    const struct membership *m, char *ret_where, size_t size)
{
	struct op op = {.f = f,
			.kind = kind,
			.bytes = (double)bytes,
			.n_ranks = m->n_ranks,
			.where = ret_where,
			.size = size};
	struct census_node all;
	struct census c;

	if (size)
		ret_where[0] = '\0';
	if (m->n_ranks < 2 || census_take(f, m, &c) < 0)
		return 0;
	op.root = membership_world(m, root);
	for (uint32_t at = c.first; (at = census_domain(f, &c, at, &all)) != UINT32_MAX;
	     at += fabric_domain_nodes(f, at))
		op.n_domains++;
	bound_all(&op, m, &c);
	census_deinit(&c);
	return op.ns;
}
