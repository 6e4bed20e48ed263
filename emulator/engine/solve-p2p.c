/* See solve-p2p.h. The calls of the real ranks are connections that share the ports of their ends.
 * Calls without bytes have no messages; calls to oneself take no time. */
#include "engine/solve-p2p.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/sim-ports.h"
#include "engine/solve-parts.h"
#include "engine/solve-plan.h"
#include "engine/usage-walk.h"

struct group {
	struct port_flow *flows; /* owned, by source */
	uint32_t n_flows;
	uint32_t *ranks; /* owned, sorted: those with ports */
	uint32_t n_ranks;
	uint32_t per_rank;             /* ports: 1, or inside the domain and to others */
	uint32_t n_members;            /* of the communicator */
	double max_sent, max_received; /* by a real rank; bytes */
	uint32_t n_peers;              /* that a real rank sends to, or receives from; the most */
	bool is_with_all;              /* each real rank sends to and receives from all others */
};

static void group_deinit(struct group *g)
{
	free(g->flows);
	free(g->ranks);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* In the order of their turns. As in NCCL each rank turns to the next one first, so that not all
 * send to one at a time. */
static int by_source(const void *a, const void *b)
{
	const struct port_flow *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static uint32_t port_of(const struct group *g, uint32_t rank)
{
	const uint32_t *at = bsearch(&rank, g->ranks, g->n_ranks, sizeof(rank), by_number);

	return (uint32_t)(at - g->ranks);
}

/* The lane of call @i: how many earlier ones go the same way between the same two. */
static int number_lanes(const struct sched_p2p *calls, uint32_t n, uint16_t *ret_lane)
{
	CLEANUP(freep) uint64_t *keys = NULL;
	CLEANUP(freep) uint32_t *count = NULL;
	uint32_t i, k, capacity = 16, slot;

	while (capacity < 2 * n)
		capacity *= 2;
	keys = calloc(capacity, sizeof(*keys));
	count = calloc(capacity, sizeof(*count));
	if (!keys || !count)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		uint64_t key = ((uint64_t)calls[i].peer << 1 | calls[i].is_send) + 1;

		if (!calls[i].bytes)
			continue;
		slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
		for (k = slot; keys[k] && keys[k] != key;)
			k = (k + 1) & (capacity - 1);
		keys[k] = key;
		ret_lane[i] = (uint16_t)count[k]++;
	}
	return 0;
}

static bool is_among(const uint32_t *ranks, uint32_t n, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (ranks[i] == rank)
			return true;
	return false;
}

/* The calls of one real rank. A receive from a real rank is left out: it is that rank's send. */
static int add_calls(struct group *g, const uint32_t *ranks, uint32_t n, uint32_t self,
		     const struct sched_p2p *calls, uint32_t n_calls, uint64_t chunk_bytes)
{
	CLEANUP(freep) uint16_t *lane = malloc(((size_t)n_calls + 1) * sizeof(*lane));
	uint32_t i, n_met[2] = {0}; /* by is_send */
	double sent = 0, received = 0;

	if (!lane || number_lanes(calls, n_calls, lane))
		return -ENOMEM;
	for (i = 0; i < n_calls; i++) {
		const struct sched_p2p *c = &calls[i];
		uint32_t src = c->is_send ? self : c->peer, dst = c->is_send ? c->peer : self;

		if (!c->bytes || c->peer == self)
			continue;
		*(c->is_send ? &sent : &received) += (double)c->bytes;
		n_met[c->is_send] += lane[i] == 0;
		if (!c->is_send && is_among(ranks, n, c->peer))
			continue;
		g->flows[g->n_flows] = (struct port_flow){
			.src = src,
			.dst = dst,
			.lane = lane[i],
			.order = dst > src ? dst - src : dst + g->n_members - src,
			.n_messages = (c->bytes + chunk_bytes - 1) / chunk_bytes,
			.bytes = c->bytes,
			.chunk_bytes = chunk_bytes,
		};
		g->ranks[g->n_ranks++] = self;
		g->ranks[g->n_ranks++] = c->peer;
		g->n_flows++;
	}
	g->max_sent = fmax(g->max_sent, sent);
	g->max_received = fmax(g->max_received, received);
	for (i = 0; i < 2; i++) {
		g->n_peers = n_met[i] > g->n_peers ? n_met[i] : g->n_peers;
		g->is_with_all = g->is_with_all && n_met[i] == g->n_members - 1;
	}
	return 0;
}

static void assign_ports(struct group *g)
{
	uint32_t i, kept = 0;

	g->per_rank = 1;
	qsort(g->ranks, g->n_ranks, sizeof(*g->ranks), by_number);
	for (i = 0; i < g->n_ranks; i++)
		if (!kept || g->ranks[i] != g->ranks[kept - 1])
			g->ranks[kept++] = g->ranks[i];
	g->n_ranks = kept;
	qsort(g->flows, g->n_flows, sizeof(*g->flows), by_source);
	for (i = 0; i < g->n_flows; i++) {
		g->flows[i].egress = port_of(g, g->flows[i].src);
		g->flows[i].ingress = port_of(g, g->flows[i].dst);
	}
}

static int group_init(struct group *g, const uint32_t *ranks, uint32_t n,
		      const struct sched_p2p *const *calls, const uint32_t *n_calls,
		      uint64_t chunk_bytes)
{
	size_t total = 0;
	uint32_t i;
	int r = 0;

	for (i = 0; i < n; i++)
		total += n_calls[i];
	g->flows = malloc((total + 1) * sizeof(*g->flows));
	g->ranks = malloc((2 * total + 1) * sizeof(*g->ranks));
	if (!g->flows || !g->ranks)
		return -ENOMEM;
	g->is_with_all = n > 0;
	for (i = 0; i < n && !r; i++)
		r = add_calls(g, ranks, n, ranks[i], calls[i], n_calls[i], chunk_bytes);
	if (!r)
		assign_ports(g);
	return r;
}

struct p2p_catcher {
	const struct border *border;
	struct timing *timing;
};

static void catch_arrival(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			  double sent_ns, double arrived_ns)
{
	struct p2p_catcher *c = ctx;
	int64_t in = border_find_in(c->border, src, dst, lane);

	(void)sent_ns;
	if (in >= 0 && index < c->border->in[in].n_messages)
		c->timing->at[c->timing->offset[in] + index] = arrived_ns;
}

static int simulate(struct group *g, struct price *p, const struct border *border, struct timing *t,
		    struct err *err)
{
	struct sim_cost cost = price_cost(p);
	struct p2p_catcher catcher = {border, t};
	struct sim_watch watch = {.arrived = catch_arrival, .ctx = &catcher};
	struct sim_result result;
	int r = sim_ports(g->flows, g->n_flows, g->n_ranks * g->per_rank, &cost, NULL,
			  border ? &watch : NULL, &result, err);

	if (!r)
		t->end_ns = result.end_ns;
	return r;
}

static int from_messages(struct group *g, struct price *p, const struct border *border,
			 struct timing *t, struct err *err)
{
	struct timing base = {0};
	uint64_t i;
	int r = border ? timing_alloc(t, border, err) : 0;

	if (r)
		return r;
	for (i = 0; border && i < border->n_in_messages; i++)
		t->at[i] = 0;
	p->is_comparing = true;
	t->how = SOLVE_SIM;
	r = simulate(g, p, border, t, err);
	base.end_ns = t->end_ns;
	if (!r && p->has_difference) {
		p->is_comparing = false;
		p->is_base_only = true;
		r = simulate(g, p, NULL, &base, err);
		p->is_base_only = false;
	}
	t->model_ns = base.end_ns;
	return r;
}

/* Bytes of the busiest rank's port over the fastest port there is. */
static double group_bound(const struct group *g, const struct price *p)
{
	const struct topology *t = p->topology;
	double port = p->n_nodes == 1 ? t->intra.bytes_per_ns : t->inter.bytes_per_ns;

	if (p->has_intra)
		port = fmax(t->intra.bytes_per_ns, t->inter.bytes_per_ns);
	return fmax(g->max_sent, g->max_received) / port;
}

/* What a rank of an all-to-all sends to each other one. */
static uint64_t pair_bytes(const struct group *g)
{
	return (uint64_t)(fmin(g->max_sent, g->max_received) / (g->n_members - 1));
}

/* Where all ranks send to all others, the links that they share, such as those of a leaf, are as
 * busy as in an all-to-all: by how much longer than the ports that takes. Of other groups nbox
 * knows only what the real ranks send. */
static double shared_ns(const struct group *g, const struct price *p, double ports_ns)
{
	if (!g->is_with_all || g->n_members < 2 || !delay_has_plan(p->delay))
		return 0;
	return fmax(0, fabric_bound(delay_fabric(p->delay), COLL_ALLTOALL, pair_bytes(g), 0,
				    p->members, NULL, 0) -
			       ports_ns);
}

/* nbox_op.host of a group: only the ranks that send or receive take part in it. */
struct takers {
	const struct membership *members;
	const struct group *g;
};

static int has_rank(const struct nbox_op *op, uint32_t world_rank)
{
	const struct takers *t = op->host;
	int64_t rank = membership_rank(t->members, world_rank);
	uint32_t key = (uint32_t)rank;

	return rank >= 0 && t->g->n_ranks &&
	       bsearch(&key, t->g->ranks, t->g->n_ranks, sizeof(key), by_number) != NULL;
}

static struct sched sched_of(uint32_t n_ranks, const struct group *g)
{
	return (struct sched){.kind = COLL_SENDRECV,
			      .algo = SCHED_DIRECT,
			      .n_ranks = n_ranks,
			      .ranks_per_node = 1,
			      .n_channels = 1,
			      .elem_bytes = 1,
			      .bytes = (uint64_t)fmax(g->max_sent, g->max_received)};
}

/* The most connections that leave a port or reach it. */
static uint32_t busiest_port(const struct group *g)
{
	CLEANUP(freep) uint32_t *n = calloc(2 * (size_t)g->n_ranks + 1, sizeof(*n));
	uint32_t most = 1;

	for (uint32_t i = 0; n && i < g->n_flows; i++) {
		uint32_t *out = &n[g->flows[i].egress], *in = &n[g->n_ranks + g->flows[i].ingress];

		most = ++*out > most ? *out : most;
		most = ++*in > most ? *in : most;
	}
	return most;
}

/* NVLink and NIC are ports of their own. */
static void split_ports(struct group *g, struct routes *routes)
{
	g->per_rank = 2;
	for (uint32_t i = 0; i < g->n_flows; i++) {
		struct port_flow *flow = &g->flows[i];
		uint32_t number = routes_find(routes, flow->src, flow->dst, flow->lane);

		flow->egress = 2 * flow->egress + routes_port(routes, flow->src, number);
		flow->ingress = 2 * flow->ingress + routes_port(routes, flow->dst, number);
	}
}

/* Has the messages cost what they do over the fabric, where a scheduler plans. It is asked for an
 * all-to-all where the calls are one, as those of PyTorch and of nccl-tests. */
static int plan_group(struct planned *pl, struct price *p, const struct sched *s, struct group *g,
		      struct err *err)
{
	int r;

	*pl = (struct planned){.plan.whole_ns = -1};
	if (!delay_has_plan(p->delay))
		return 0;
	if (g->is_with_all && g->n_members > 1) {
		p->op.kind = COLL_ALLTOALL;
		p->op.bytes = pair_bytes(g);
	}
	r = planned_init(pl, p, s, err);
	p->op.kind = s->kind;
	p->op.bytes = s->bytes;
	p->lanes_at_port = pl->plan.n_lanes * busiest_port(g);
	if (r == 0 && pl->routes)
		split_ports(g, pl->routes);
	return r;
}

int solve_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
	      const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
	      const struct membership *m, struct delay_chain *d, const struct border *border,
	      uint64_t op_number, struct timing *ret, struct err *err)
{
	struct group g = {.n_members = m->n_ranks};
	const struct takers takers = {m, &g};
	struct planned pl = {.plan.whole_ns = -1};
	struct timing own = {0};
	bool has_whole = false;
	struct sched s;
	struct price p;
	int r = group_init(&g, ranks, n, calls, n_calls,
			   chunk_bytes ? chunk_bytes : SCHED_CHUNK_DEFAULT);

	if (r)
		err_set(err, -r, "no memory for a group of calls");
	if (!r) {
		s = sched_of(m->n_ranks, &g);
		price_init(&p, &s, t, m, d, op_number, err);
		p.op.has_rank = has_rank;
		p.op.host = &takers;
		p.op.n_peers = g.n_peers;
		own.bound_ns = group_bound(&g, &p);
		r = plan_group(&pl, &p, &s, &g, err);
		own.plan = pl.plan;
		if (!r)
			r = solve_from_op(&p, &own, err);
		has_whole = r == 0;
	}
	if (r == 1 || (has_whole && delay_works_on_messages(d))) {
		double whole_ns = own.end_ns;

		r = delay_has_message(d) ? from_messages(&g, &p, border, &own, err)
					 : solve_no_answer(&p, err);
		if (!r && has_whole)
			solve_on_top(whole_ns, border, &own);
		own.shared_ns = r ? 0 : shared_ns(&g, &p, own.model_ns);
		own.end_ns += pl.plan.base_ns + own.shared_ns;
		own.model_ns += pl.plan.base_ns + own.shared_ns;
	}
	if (!r)
		r = solve_finish(&p, border, &own, err);
	planned_deinit(&pl);
	group_deinit(&g);
	if (r)
		timing_deinit(&own);
	else
		*ret = own;
	return r;
}

/* Ends of a group, by port: starts, busy ports, ends, free ports. */
struct port_times {
	double *start, *busy, *end, *free;
	double first; /* they are relative to it */
};

static int times_init(struct port_times *t, const struct group *g, const struct p2p_ranks *who)
{
	size_t n = g->n_ranks * (size_t)g->per_rank;
	uint32_t i;

	*t = (struct port_times){.start = malloc(4 * (n + 1) * sizeof(double)), .first = INFINITY};
	if (!t->start)
		return -ENOMEM;
	t->busy = t->start + n;
	t->end = t->busy + n;
	t->free = t->end + n;
	for (i = 0; i < n; i++) {
		uint32_t rank = g->ranks[i / g->per_rank];

		t->start[i] = who->start(who->ctx, rank);
		t->busy[i] = who->busy ? who->busy(who->ctx, rank) : -INFINITY;
		t->first = fmin(t->first, t->start[i]);
	}
	if (isinf(t->first))
		t->first = 0;
	for (i = 0; i < n; i++) {
		t->start[i] -= t->first;
		t->busy[i] = fmax(t->busy[i] - t->first, t->start[i]);
	}
	return 0;
}

/* The model knows the time of the whole group only: a rank that receives waits for those that send
 * to it, and for the group's time; one whose sends do not fit the buffers, for their receivers. */
static void ends_from_whole(const struct group *g, double whole_ns, struct port_times *t)
{
	uint32_t i;

	for (i = 0; i < g->n_ranks * g->per_rank; i++) {
		t->end[i] = t->start[i];
		t->free[i] = t->busy[i] + whole_ns;
	}
	for (i = 0; i < g->n_flows; i++) {
		const struct port_flow *f = &g->flows[i];
		double share = fmax(0, 1 - (double)SIM_BUFFER_BYTES / (double)f->bytes);
		double from = t->busy[f->egress], to = t->start[f->ingress];

		t->end[f->ingress] = fmax(t->end[f->ingress], fmax(from, to) + whole_ns);
		if (share > 0)
			t->end[f->egress] =
				fmax(t->end[f->egress], fmax(from, to) + share * whole_ns);
	}
}

static int ends_from_messages(const struct group *g, struct price *p, uint64_t chunk_bytes,
			      struct port_times *t, struct err *err)
{
	struct sim_cost cost = price_cost(p);
	struct sched chunks = {.chunk_bytes = chunk_bytes};
	struct sim_ranks ranks = {.start_ns = t->start,
				  .busy_ns = t->busy,
				  .buffered = sim_buffered(&chunks),
				  .end_ns = t->end,
				  .free_ns = t->free};
	struct sim_result result;

	return sim_ports(g->flows, g->n_flows, g->n_ranks * g->per_rank, &cost, &ranks, NULL,
			 &result, err);
}

static int group_ends(const struct group *g, struct price *p, uint64_t chunk_bytes,
		      const struct timing *timing, const struct p2p_ranks *who, struct err *err)
{
	double extra_ns =
		(p->is_base_only ? 0 : timing->extra_ns) + timing->plan.base_ns + timing->shared_ns;
	double raw_ns = (p->is_base_only ? timing->model_ns : timing->end_ns) - extra_ns;
	struct port_times t;
	uint32_t i;
	int r = 0;

	if (times_init(&t, g, who))
		return err_set(err, ENOMEM, "no memory for a group of calls");
	if (timing->is_of_model)
		ends_from_whole(g, raw_ns, &t);
	else
		r = ends_from_messages(g, p, chunk_bytes, &t, err);
	for (i = 0; i < g->n_ranks && !r; i++) {
		uint32_t a = i * g->per_rank, b = a + g->per_rank - 1;
		double end = fmax(t.end[a], t.end[b]), left = fmax(t.free[a], t.free[b]);

		who->done(who->ctx, g->ranks[i], t.first + fmax(t.start[a], end + extra_ns),
			  t.first + fmax(t.start[a], left + extra_ns));
	}
	free(t.start);
	return r;
}

int solve_p2p_ends(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		   const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
		   const struct membership *m, struct delay_chain *d, uint64_t op_number,
		   const struct timing *timing, bool is_plain, const struct p2p_ranks *who,
		   struct err *err)
{
	uint64_t chunk = chunk_bytes ? chunk_bytes : SCHED_CHUNK_DEFAULT;
	struct group g = {.n_members = m->n_ranks};
	const struct takers takers = {m, &g};
	struct planned pl = {.plan.whole_ns = -1};
	struct sched s;
	struct price p;
	int r = group_init(&g, ranks, n, calls, n_calls, chunk);

	if (r) {
		err_set(err, -r, "no memory for a group of calls");
	} else {
		s = sched_of(m->n_ranks, &g);
		price_init(&p, &s, t, m, d, op_number, err);
		p.op.has_rank = has_rank;
		p.op.host = &takers;
		p.is_base_only = is_plain;
		r = plan_group(&pl, &p, &s, &g, err);
		if (!r)
			r = group_ends(&g, &p, chunk, timing, who, err);
	}
	planned_deinit(&pl);
	group_deinit(&g);
	return r;
}

/* All send to all: the usage of an all-to-all. */
static int usage_of_all(const struct group *g, uint64_t chunk_bytes, const struct topology *t,
			const struct membership *m, struct delay_chain *d, uint64_t op_number,
			const struct usage_images *images, struct usage **ret, struct err *err)
{
	struct sched s = {.kind = COLL_ALLTOALL,
			  .algo = SCHED_DIRECT,
			  .n_ranks = m->n_ranks,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .bytes = pair_bytes(g),
			  .chunk_bytes = chunk_bytes};
	int r;

	while (s.ranks_per_node < m->n_ranks &&
	       topology_hop(t, membership_world(m, 0), membership_world(m, s.ranks_per_node)) !=
		       HOP_INTER)
		s.ranks_per_node++;
	r = sched_init(&s, err);
	return r < 0 ? r : usage_of_op(&s, t, m, d, op_number, images, ret, err);
}

/* The copies of a connection, by the NICs that are nearest. */
static int add_copies(const struct usage_walk *w, const struct port_flow *flow, uint32_t owner,
		      const struct usage_copies *copies)
{
	const struct membership *m = w->price->members;
	const uint32_t *list;
	uint32_t n = copies->of(copies->ctx, owner, &list);
	int64_t self = membership_world(m, owner);
	int64_t peer = membership_world(m, flow->src == owner ? flow->dst : flow->src);
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		int64_t to = peer - self + list[i];

		if (to < 0 || to > UINT32_MAX || !copies->has(copies->ctx, list[i], (uint32_t)to))
			continue;
		r = flow->src == owner ? usage_add_near(w, list[i], (uint32_t)to, flow->lane,
							(double)flow->bytes)
				       : usage_add_near(w, (uint32_t)to, list[i], flow->lane,
							(double)flow->bytes);
	}
	return r;
}

/* A receive that the sender's own copies of @owner's sends make: a ring's from the left is one to
 * the right. */
static bool is_mirrored(const struct group *g, const struct membership *m,
			const struct port_flow *flow, uint32_t owner)
{
	int64_t far = (int64_t)membership_world(m, flow->dst) - membership_world(m, flow->src);

	for (uint32_t i = 0; i < g->n_flows && flow->src != owner; i++)
		if (g->flows[i].src == owner &&
		    (int64_t)membership_world(m, g->flows[i].dst) - membership_world(m, owner) ==
			    far)
			return true;
	return false;
}

static int add_flows(const struct usage_walk *w, const struct group *g, const uint32_t *ranks,
		     uint32_t n, const struct usage_copies *copies, bool is_received)
{
	int r = 0;

	for (uint32_t i = 0; i < g->n_flows && !r; i++) {
		const struct port_flow *f = &g->flows[i];
		bool is_sent = is_among(ranks, n, f->src);
		uint32_t owner = is_sent ? f->src : f->dst;

		if (is_sent && is_received)
			continue;
		r = usage_add_connection(w, f->src, f->dst, f->lane, (double)f->bytes);
		if (r == 0 && copies && w->routes && !is_mirrored(g, w->price->members, f, owner))
			r = add_copies(w, f, owner, copies);
	}
	return r;
}

int solve_p2p_usage(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
		    const struct membership *m, struct delay_chain *d, uint64_t op_number,
		    const struct usage_images *images, const struct usage_copies *copies,
		    bool is_received, struct usage **ret, struct err *err)
{
	CLEANUP(usage_maker_deinit) struct usage_maker maker = {0};
	uint64_t chunk = chunk_bytes ? chunk_bytes : SCHED_CHUNK_DEFAULT;
	struct group g = {.n_members = m->n_ranks};
	struct planned pl = {.plan.whole_ns = -1};
	struct usage_walk w = {.maker = &maker, .is_own = true};
	struct sched s;
	struct price p;
	int r = group_init(&g, ranks, n, calls, n_calls, chunk);

	if (r) {
		err_set(err, -r, "no memory for a group of calls");
	} else if (g.is_with_all && g.n_members > 1 && !is_received) {
		r = usage_of_all(&g, chunk, t, m, d, op_number, images, ret, err);
	} else {
		s = sched_of(m->n_ranks, &g);
		price_init(&p, &s, t, m, d, op_number, err);
		w.price = &p;
		r = plan_group(&pl, &p, &s, &g, err);
		w.routes = pl.routes;
		if (!r && (add_flows(&w, &g, ranks, n, copies, is_received) ||
			   usage_maker_end(&maker, ret)))
			r = err_set(err, ENOMEM, "no memory for what calls put on links");
	}
	planned_deinit(&pl);
	group_deinit(&g);
	return r;
}
