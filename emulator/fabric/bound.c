/* See fabric.h. Each set of ranks that links cut off from the others (one rank, a domain, a leaf, a
 * pod) must send and receive so many bytes at least, whatever the algorithm, where both sides may
 * combine and copy at will. Over all sets of a kind together an all-reduce sends more: N - 1
 * partial sums until one set has the sum, N - 1 copies of it; no switch between domains adds. An
 * NVSwitch with NVLS does: for its GPUs only the first of the two holds.
 *
 * Not looked at: which of its links a set uses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/census.h"
#include "fabric/latency.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"

/* What a bound is of: a kind of place and up to two numbers of nodes. */
struct place {
	enum place_kind {
		NOWHERE,
		ALL_PORTS,
		ONE_GPU, /* b of node a */
		GPUS,    /* of node a */
		ALL_NICS,
		NICS, /* of nodes a to b */
		ALL_LEAVES,
		LEAVES,
		ALL_PODS,
		POD,
		ALL_SWITCHES,
		SWITCH, /* a */
		LATENCY
	} kind;
	uint32_t a, b;
};

struct op {
	const struct fabric *f;
	enum coll_kind kind;
	double bytes, n_ranks;
	uint32_t n_domains;
	uint32_t root; /* world rank */
	double ns;     /* the bound so far */
	struct place where;
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

static void raise(struct op *op, double ns, struct place where)
{
	if (!(ns > op->ns))
		return;
	op->ns = ns;
	op->where = where;
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
	case COLL_SENDRECV: /* somebody in it has its next rank elsewhere */
		out = in = b;
		break;
	case COLL_ALLREDUCE:
	case COLL_KINDS:
	default:
		break;
	}
	*ret_out = others > 0 ? out : 0;
	*ret_in = others > 0 ? in : 0;
}

/* @n such sets. */
static void cut(struct op *op, const struct set *s, double n, struct place where, struct sum *sum)
{
	double out, in;

	if (n <= 0)
		return;
	need(op, s, &out, &in);
	raise(op, out / s->out, where);
	raise(op, in / s->in, where);
	sum->n_sets += n;
	sum->bytes += n * out;
	sum->bytes_in += n * in;
	sum->out += n * s->out;
	sum->in += n * s->in;
}

/* One of the @n sets has the root, if @has_root. */
static void cut_alike(struct op *op, struct set *s, double n, bool has_root, struct place where,
		      struct sum *sum)
{
	s->has_root = false;
	cut(op, s, n - has_root, where, sum);
	s->has_root = true;
	cut(op, s, has_root, where, sum);
}

/* Every byte that a set receives another has sent. */
static void cut_all(struct op *op, const struct sum *sum, struct place where)
{
	double bytes = fmax(sum->bytes, sum->bytes_in);

	if (op->kind == COLL_ALLREDUCE)
		bytes = 2 * (sum->n_sets - 1) * op->bytes;
	if (sum->n_sets < 2)
		return;
	raise(op, bytes / sum->out, where);
	raise(op, bytes / sum->in, where);
}

/* Bytes/ns of the NICs @bits of a node. */
static double nics_rate(const struct fabric *f, uint32_t node, uint32_t bits, unsigned direction)
{
	double sum = 0;

	if (bits && !f->n_changes)
		return __builtin_popcount(bits) * link_rate(f, LINK_NIC, node, 0, direction);
	for (; bits; bits &= bits - 1)
		sum += link_rate(f, LINK_NIC, node, (uint32_t)__builtin_ctz(bits), direction);
	return sum;
}

/* How fast a rank reaches NICs without another's help. */
static double door_rate(const struct fabric *f, uint32_t node, uint32_t local, unsigned direction)
{
	const struct fabric_class *c = fabric_class_of(f, node);
	double nics = nics_rate(f, node, fabric_near_nics(c, local), direction);

	if (c->intra == FABRIC_PCIE)
		return fmin(nics, link_rate(f, LINK_GPU, node, local, direction));
	if (c->pcie_bytes_per_ns > 0)
		return fmin(nics, link_rate(f, LINK_PCIE, node, local, direction));
	return nics;
}

/* All that a rank can send or receive: where @has_peers, to its domain; where the op has several
 * domains, to NICs. */
static double rank_rate(const struct op *op, uint32_t rank, bool has_peers, unsigned direction)
{
	const struct fabric *f = op->f;
	uint32_t node = rank / f->gpus_per_node, local = rank % f->gpus_per_node;
	double port = link_rate(f, LINK_GPU, node, local, direction);
	double door = op->n_domains > 1 ? door_rate(f, node, local, direction) : 0;

	if (fabric_class_of(f, node)->intra == FABRIC_PCIE && has_peers)
		return port; /* on the way to its NIC, too */
	return (has_peers ? port : 0) + door;
}

/* Every rank by itself, where links were changed. */
static void bound_each_rank(struct op *op, const struct membership *m, const struct census *c,
			    struct sum *sum)
{
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i), n = op->f->gpus_per_node;
		uint32_t at = fabric_domain(op->f, rank);
		struct census_domains d;
		struct set s = {.n_ranks = 1, .has_root = rank == op->root};

		census_next(op->f, c, &at, &d);
		s.out = rank_rate(op, rank, d.n_ranks > 1, LINK_OUT);
		s.in = rank_rate(op, rank, d.n_ranks > 1, LINK_IN);
		cut(op, &s, 1, (struct place){ONE_GPU, rank / n, rank % n}, sum);
	}
}

static void bound_ranks(struct op *op, const struct membership *m, const struct census *c)
{
	const struct fabric *f = op->f;
	struct census_domains d;
	struct sum sum = {0};
	bool has_nvls = false;
	uint32_t at = 0;

	if (f->n_changes)
		bound_each_rank(op, m, c, &sum);
	while (census_next(f, c, &at, &d)) {
		bool has_root = op->root / f->gpus_per_node - d.first < d.n_nodes * d.times;
		uint32_t rank = d.first * f->gpus_per_node;
		struct set s = {.n_ranks = 1};

		has_nvls = has_nvls || fabric_class_of(f, d.first)->has_nvls;
		/* of a node's GPUs that which has the most NICs near to it */
		for (uint32_t i = 0; !f->n_changes && i < f->gpus_per_node; i++) {
			s.out = fmax(s.out, rank_rate(op, rank + i, d.n_ranks > 1, LINK_OUT));
			s.in = fmax(s.in, rank_rate(op, rank + i, d.n_ranks > 1, LINK_IN));
		}
		if (!f->n_changes)
			cut_alike(op, &s, (double)d.n_ranks * d.times, has_root,
				  (struct place){GPUS, d.first, 0}, &sum);
	}
	if (!has_nvls)
		cut_all(op, &sum, (struct place){ALL_PORTS, 0, 0});
}

/* The NICs of a domain that are near to ranks of the op. */
static void bound_domains(struct op *op, const struct census *c)
{
	const struct fabric *f = op->f;
	struct census_domains d;
	struct sum sum = {0};
	uint32_t at = 0;

	while (census_next(f, c, &at, &d)) {
		bool has_root = op->root / f->gpus_per_node - d.first < d.n_nodes * d.times;
		uint32_t n = f->n_changes ? d.times : 1; /* one by one, where they may differ */

		for (uint32_t i = 0; i < n; i++) {
			uint32_t first = d.first + i * d.n_nodes, last = first + d.n_nodes - 1;
			struct set s = {.n_ranks = d.n_ranks};

			for (uint32_t node = first; node <= last; node++) {
				s.out += nics_rate(f, node, census_nics(c, node), LINK_OUT);
				s.in += nics_rate(f, node, census_nics(c, node), LINK_IN);
			}
			if (n > 1)
				has_root = op->root / f->gpus_per_node - first < d.n_nodes;
			cut_alike(op, &s, n > 1 ? 1 : d.times, has_root,
				  (struct place){NICS, first, last}, &sum);
		}
	}
	cut_all(op, &sum, (struct place){ALL_NICS, 0, 0});
}

static double pod_rate(const struct fabric *f, uint32_t pod, unsigned direction)
{
	uint32_t n = leaf_pod_count(f);
	double sum = 0;

	if (f->network.kind == FABRIC_FAT_TREE)
		return link_rate(f, LINK_POD, pod, 0, direction);
	if (!f->n_changes && n > 1)
		return (n - 1) * link_rate(f, LINK_GROUP, pod, pod ? 0 : 1, LINK_OUT);
	for (uint32_t i = 0; i < n; i++) {
		bool is_out = direction == LINK_OUT;

		sum += i == pod ? 0
				: link_rate(f, LINK_GROUP, is_out ? pod : i, is_out ? i : pod, 0);
	}
	return sum;
}

/* Ranks of the op on nodes from @from to before @to, and the NICs near to them. *@i: a run that
 * does not end before @from. */
static double ranks_between(const struct census *c, size_t *i, uint64_t from, uint64_t to,
			    uint32_t *ret_nics)
{
	double n = 0;

	*ret_nics = 0;
	for (; *i < c->n; ++*i) {
		const struct census_run *run = &c->runs[*i];
		uint64_t first = run->first, end = first + run->n_nodes;
		uint64_t low = first > from ? first : from, high = end < to ? end : to;

		if (low < high) {
			n += (double)(high - low) * run->n_ranks;
			*ret_nics |= run->nics;
		}
		if (end > to)
			break; /* it goes on behind */
	}
	return n;
}

/* Leaves of a row, or pods: sets of @n_nodes nodes. */
static void bound_leaves(struct op *op, const struct census *c, uint64_t n_nodes, bool is_pod)
{
	const struct fabric *f = op->f;
	const struct census_run *last = &c->runs[c->n - 1];
	uint64_t end = (uint64_t)last->first + last->n_nodes;
	struct sum sum = {0};
	size_t i = 0;

	for (uint64_t row = c->runs[0].first / n_nodes; row * n_nodes < end; row++) {
		uint64_t at = row * n_nodes, stop = at + n_nodes;
		uint32_t nics;
		struct set s = {.n_ranks = ranks_between(c, &i, at, stop, &nics),
				.has_root = op->root / f->gpus_per_node / n_nodes == row};
		struct place where = {is_pod ? POD : LEAVES, (uint32_t)at,
				      (uint32_t)(stop < f->n_nodes ? stop : f->n_nodes) - 1};

		if (s.n_ranks == 0 || s.n_ranks == op->n_ranks)
			continue;
		s.out = is_pod ? pod_rate(f, (uint32_t)row, LINK_OUT)
			       : link_row_rate(f, (uint32_t)row, nics, LINK_OUT);
		s.in = is_pod ? pod_rate(f, (uint32_t)row, LINK_IN)
			      : link_row_rate(f, (uint32_t)row, nics, LINK_IN);
		cut(op, &s, 1, where, &sum);
	}
	cut_all(op, &sum, (struct place){is_pod ? ALL_PODS : ALL_LEAVES, 0, 0});
}

/* Nodes at the same switch: all of its cables together. */
static void bound_switches(struct op *op, const struct membership *m)
{
	const struct fabric *f = op->f;
	struct set *sets = calloc(f->n_switches, sizeof(*sets));
	struct sum sum = {0};

	for (uint32_t i = 0; sets && i < m->n_ranks; i++) {
		uint32_t node = membership_world(m, i) / f->gpus_per_node;

		sets[f->node_switch[node]].n_ranks++;
		sets[f->node_switch[node]].has_root |= membership_world(m, i) == op->root;
	}
	for (uint32_t i = 0; sets && i < f->n_cables; i++) {
		double out = link_rate(f, LINK_CABLE, i, 0, LINK_OUT);
		double in = link_rate(f, LINK_CABLE, i, 0, LINK_IN);

		sets[f->cables[i].from].out += out;
		sets[f->cables[i].from].in += in;
		sets[f->cables[i].to].out += in;
		sets[f->cables[i].to].in += out;
	}
	for (uint32_t i = 0; sets && i < f->n_switches; i++)
		if (sets[i].n_ranks > 0 && sets[i].n_ranks < op->n_ranks)
			cut(op, &sets[i], 1, (struct place){SWITCH, i, 0}, &sum);
	cut_all(op, &sum, (struct place){ALL_SWITCHES, 0, 0});
	free(sets);
}

static void bound_pair(struct op *op, const struct census *c, uint32_t src, uint32_t dst)
{
	uint32_t n = op->f->gpus_per_node;

	if (src != dst)
		raise(op, latency_least(op->f, c, src, dst),
		      (struct place){LATENCY, src / n, dst / n});
}

/* The first and the last rank, and where links were changed, one of the domain that is hardest to
 * reach; else the first again. */
static void find_ends(const struct op *op, const struct membership *m, const struct census *c,
		      uint32_t ret[3])
{
	uint32_t low = UINT32_MAX, high = 0, far = UINT32_MAX, rank, at = 0;
	struct census_domains d;
	double worst = 0, ns;

	for (uint32_t i = 0; i < m->n_ranks; i++) {
		if (!m->table) /* only two are asked */
			i = i ? m->n_ranks - 1 : 0;
		rank = membership_world(m, i);
		low = rank < low ? rank : low;
		high = rank > high ? rank : high;
	}
	while (op->f->n_changes && op->n_domains > 1 && census_next(op->f, c, &at, &d))
		for (uint32_t i = 0; i < d.times; i++) {
			uint32_t domain = d.first + i * d.n_nodes;

			ns = latency_door(op->f, c, domain, LINK_OUT) +
			     latency_door(op->f, c, domain, LINK_IN);
			if (ns > worst)
				far = domain * op->f->gpus_per_node;
			worst = fmax(worst, ns);
		}
	ret[0] = low;
	ret[1] = high;
	ret[2] = far == UINT32_MAX ? low : far;
}

/* Of some pairs of ranks one must hear of the other. */
static void bound_latency(struct op *op, const struct membership *m, const struct census *c)
{
	bool is_out = op->kind == COLL_BROADCAST || op->kind == COLL_SCATTER;
	bool is_in = op->kind == COLL_REDUCE || op->kind == COLL_GATHER;
	uint32_t ends[4];

	if (op->kind == COLL_SENDRECV) {
		bound_pair(op, c, membership_world(m, m->n_ranks - 1), membership_world(m, 0));
		return;
	}
	find_ends(op, m, c, ends);
	ends[3] = is_out || is_in ? op->root : ends[0];
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

	if (op->n_domains > 1)
		bound_domains(op, c);
	if (op->n_domains > 1 && leaf_is_cut(op->f) && n->kind == FABRIC_CABLES)
		bound_switches(op, m);
	else if (op->n_domains > 1 && leaf_is_cut(op->f)) {
		bound_leaves(op, c, n->nodes_per_leaf, false);
		if (leaf_pod_count(op->f) > 1)
			bound_leaves(op, c, (uint64_t)n->nodes_per_leaf * n->leaves_per_pod, true);
	}
	bound_ranks(op, m, c); /* behind NICs: a lone rank of a node is as fast as these */
	bound_latency(op, m, c);
}

static void write_place(const struct place *p, char *buf, size_t size)
{
	static const char *const texts[] = {
		[NOWHERE] = "",
		[ALL_PORTS] = "the GPUs' ports",
		[GPUS] = "the GPUs of",
		[ALL_NICS] = "the NICs of all nodes",
		[NICS] = "the NICs of",
		[ALL_LEAVES] = "the leaves",
		[LEAVES] = "the leaves of",
		[ALL_PODS] = "the pods",
		[POD] = "the pod of",
		[ALL_SWITCHES] = "the switches' cables",
		[LATENCY] = "latency from",
	};

	if (p->kind == ONE_GPU)
		snprintf(buf, size, "node%u.gpu%u", p->a, p->b);
	else if (p->kind == SWITCH)
		snprintf(buf, size, "the cables of sw%u", p->a);
	else if (p->kind == GPUS || (p->kind == NICS && p->a == p->b))
		snprintf(buf, size, "%s node%u", texts[p->kind], p->a);
	else if (p->kind == NICS || p->kind == LEAVES || p->kind == POD || p->kind == LATENCY)
		snprintf(buf, size, "%s node%u to node%u", texts[p->kind], p->a, p->b);
	else
		snprintf(buf, size, "%s", texts[p->kind]);
}

double fabric_bound(const struct fabric *f, enum coll_kind kind, uint64_t bytes, uint32_t root,
		    const struct membership *m, char *ret_where, size_t size)
{
	struct op op = {.f = f, .kind = kind, .bytes = (double)bytes, .n_ranks = m->n_ranks};
	struct census_domains d;
	struct census c;
	uint32_t at = 0;

	if (size)
		ret_where[0] = '\0';
	if (m->n_ranks < 2 || census_take(f, m, &c) < 0)
		return 0;
	op.root = membership_world(m, root);
	while (census_next(f, &c, &at, &d))
		op.n_domains += d.times;
	bound_all(&op, m, &c);
	census_deinit(&c);
	write_place(&op.where, ret_where, size);
	return op.ns;
}
