/* Event simulation against slow obvious models: schedules of all kinds, with a random cost for each
 * message, and ranks that start at different times; ports. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/sim-ports.h"
#include "engine/sim.h"
#include "rng.h"

/* --- schedules --------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 31;
}

/* Costs that differ from message to message; few values, so that times are often equal. */
static int random_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		       uint64_t bytes, struct nbox_delay *ret)
{
	uint64_t h = mix(mix(mix(mix(*(uint64_t *)ctx, src), dst), lane), index);

	(void)bytes;
	ret->latency_ns = (double)(h % 5);
	ret->occupancy_ns = (double)(h / 5 % 4);
	return 0;
}

struct place { /* of a connection in the model */
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n, n_known;
	double free_ns, *arrived, *left, ready_ns;
	uint64_t n_told;
};

struct model {
	struct place *conns;
	uint32_t n_conns;
	double last_told;
	uint64_t n_told;
};

static struct place *find(struct model *m, uint32_t src, uint32_t dst, uint16_t lane)
{
	for (uint32_t i = 0; i < m->n_conns; i++)
		if (m->conns[i].src == src && m->conns[i].dst == dst && m->conns[i].lane == lane)
			return &m->conns[i];
	fail_msg("no connection from %u to %u, lane %u", src, dst, lane);
	return NULL;
}

static void model_init(struct model *m, const struct sched *s)
{
	*m = (struct model){0};
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		struct sched_conn *conns;
		uint32_t n_in, n_out;

		assert_int_equal(sched_conns(s, r, &conns, &n_in, &n_out), 0);
		m->conns = realloc(m->conns, (m->n_conns + n_out + 1) * sizeof(*m->conns));
		for (uint32_t i = n_in; i < n_in + n_out; i++)
			m->conns[m->n_conns++] = (struct place){
				.src = conns[i].src,
				.dst = conns[i].dst,
				.lane = conns[i].lane,
				.n = conns[i].n_messages,
				.arrived = calloc(conns[i].n_messages + 1, sizeof(double)),
				.left = calloc(conns[i].n_messages + 1, sizeof(double)),
			};
		free(conns);
	}
}

static void model_free(struct model *m)
{
	for (uint32_t i = 0; i < m->n_conns; i++) {
		free(m->conns[i].arrived);
		free(m->conns[i].left);
	}
	free(m->conns);
}

/* What the connections of a rank make of its end, and when its port is free. */
static void model_sends(const struct model *m, uint32_t rank, uint64_t buffered, double *ret_end,
			double *ret_free)
{
	for (uint32_t i = 0; i < m->n_conns; i++) {
		const struct place *c = &m->conns[i];

		if (c->src != rank)
			continue;
		*ret_end = fmax(*ret_end, c->n_known < c->n ? INFINITY : c->ready_ns);
		if (c->n > buffered)
			*ret_end = fmax(*ret_end, c->left[c->n - 1 - buffered]);
		*ret_free = fmax(*ret_free, c->n_known < c->n ? INFINITY : c->free_ns);
	}
}

/* Goes round all threads until nothing more can be executed. */
static double model_run(struct model *m, const struct sched *s, uint64_t seed, double reduce,
			const struct sim_ranks *ranks)
{
	uint64_t(*step)[64] = calloc(s->n_ranks, sizeof(*step));
	double(*ready)[64] = calloc(s->n_ranks, sizeof(*ready)), end = 0;
	bool moved = true;

	for (uint32_t r = 0; r < s->n_ranks; r++) {
		assert_true(sched_n_threads(s, r) <= 64);
		end = fmax(end, ranks->start_ns[r]);
		for (uint32_t t = 0; t < 64; t++)
			ready[r][t] = ranks->start_ns[r];
	}
	for (uint32_t i = 0; i < m->n_conns; i++)
		m->conns[i].free_ns = ranks->busy_ns[m->conns[i].src];
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < s->n_ranks; r++) {
			for (uint32_t t = 0; t < sched_n_threads(s, r); t++) {
				struct sched_step st;
				bool can = step[r][t] < sched_n_steps(s, r, t) &&
					   !isinf(ranks->start_ns[r]);

				if (!can)
					continue;
				sched_step(s, r, t, step[r][t], &st);
				for (uint32_t i = 0; i < st.n_recv; i++)
					can = can && find(m, st.recv[i], r, st.recv_lane)->n_known >
							     st.recv_index;
				if (!can)
					continue;
				for (uint32_t i = 0; i < st.n_recv; i++)
					ready[r][t] = fmax(ready[r][t],
							   find(m, st.recv[i], r, st.recv_lane)
								   ->arrived[st.recv_index]);
				if (st.flags & STEP_REDUCE)
					ready[r][t] += st.n_recv * (double)st.bytes * reduce;
				end = fmax(end, ready[r][t]);
				for (uint32_t i = 0; i < st.n_send; i++) {
					struct place *c = find(m, r, st.send[i], st.send_lane);
					struct nbox_delay d;

					assert_int_equal(c->n_known, st.send_index);
					random_cost(&seed, r, st.send[i], st.send_lane,
						    st.send_index, st.bytes, &d);
					c->free_ns = fmax(c->free_ns, ready[r][t]) + d.occupancy_ns;
					c->left[st.send_index] = c->free_ns;
					c->ready_ns = ready[r][t];
					c->arrived[st.send_index] = c->free_ns + d.latency_ns;
					if (st.send_index)
						c->arrived[st.send_index] =
							fmax(c->arrived[st.send_index],
							     c->arrived[st.send_index - 1]);
					end = fmax(end, c->arrived[st.send_index]);
					c->n_known++;
				}
				step[r][t]++;
				moved = true;
			}
		}
	}
	for (uint32_t i = 0; i < m->n_conns && !isinf(end); i++)
		assert_int_equal(m->conns[i].n_known, m->conns[i].n);
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		ranks->end_ns[r] = ranks->start_ns[r];
		ranks->free_ns[r] = 0;
		for (uint32_t t = 0; t < sched_n_threads(s, r); t++)
			ranks->end_ns[r] =
				fmax(ranks->end_ns[r],
				     step[r][t] < sched_n_steps(s, r, t) ? INFINITY : ready[r][t]);
		model_sends(m, r, ranks->buffered, &ranks->end_ns[r], &ranks->free_ns[r]);
	}
	free(step);
	free(ready);
	return end;
}

static void told(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		 double sent_ns, double arrived_ns)
{
	struct model *m = ctx;
	struct place *c = find(m, src, dst, lane);

	assert_int_equal(index, c->n_told++); /* each once, in order */
	m->n_told++;
	assert_true(arrived_ns >= m->last_told); /* in order of time */
	m->last_told = arrived_ns;
	assert_true(sent_ns <= arrived_ns);
	if (arrived_ns != c->arrived[index])
		fail_msg("message %llu from %u to %u arrived at %g, not %g",
			 (unsigned long long)index, src, dst, arrived_ns, c->arrived[index]);
}

static void schedules_take_the_time_of_the_slow_model(void **state)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} kinds[] = {{COLL_ALLREDUCE, SCHED_RING},  {COLL_ALLREDUCE, SCHED_TREE},
		     {COLL_ALLGATHER, SCHED_RING},  {COLL_REDUCESCATTER, SCHED_RING},
		     {COLL_BROADCAST, SCHED_CHAIN}, {COLL_REDUCE, SCHED_CHAIN}};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 6);
	for (int i = 0; i < 600; i++) {
		uint32_t k = below(&r, 6);
		struct sched s = {.kind = kinds[k].kind,
				  .algo = kinds[k].algo,
				  .ranks_per_node = 1 + below(&r, 4),
				  .n_channels = 1 + below(&r, 2),
				  .n_rails = below(&r, 4),
				  .elem_bytes = 4,
				  .bytes = 4 * (uint64_t)below(&r, 20000),
				  .chunk_bytes = 4 * (1 + below(&r, 4000)),
				  .slices = 1 + below(&r, 2)};
		uint64_t seed = rng_u64(&r);
		/* the model knows of no turns: one thread a rank */
		bool has_turns = s.n_channels > 1 || s.algo == SCHED_TREE;
		double reduce = has_turns ? 0 : below(&r, 3) / 64.;
		struct sim_cost cost = {.message = random_cost,
					.ctx = &seed,
					.reduce_ns_per_byte = reduce};
		struct model m;
		struct sim_watch watch = {told, &m};
		struct sim_result result;
		double start[64] = {0}, busy[64] = {0}, ends[2][64], ports[2][64], end;
		struct sim_ranks ranks = {start, busy, 1 + below(&r, 9), ends[0], ports[0]};
		struct err err = {""};

		s.n_ranks = s.ranks_per_node * (1 + below(&r, 7));
		s.root = below(&r, s.n_ranks);
		assert_int_equal(sched_init(&s, &err), 0);
		for (uint32_t n = 0; below(&r, 2) && n < s.n_ranks; n++)
			start[n] = below(&r, 9 * s.n_ranks) ? below(&r, 30) : INFINITY;
		for (uint32_t n = 0; below(&r, 2) && n < s.n_ranks; n++)
			busy[n] = below(&r, 30);
		model_init(&m, &s);
		end = model_run(&m, &s, seed, reduce, &ranks);
		ranks.end_ns = ends[1];
		ranks.free_ns = ports[1];
		assert_int_equal(sim_run(&s, &cost, &ranks, &watch, &result, &err), 0);
		assert_true(result.end_ns == end);
		assert_int_equal(result.n_messages, m.n_told);
		if (!isinf(end))
			assert_int_equal(result.n_messages, sched_total_messages(&s));
		for (uint32_t n = 0; n < s.n_ranks; n++)
			assert_true(ends[0][n] == ends[1][n] && ports[0][n] == ports[1][n]);
		model_free(&m);
	}
}

static int flat_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		     uint64_t bytes, struct nbox_delay *ret)
{
	(void)src;
	(void)dst;
	(void)lane;
	(void)index;
	(void)bytes;
	*ret = (struct nbox_delay){.latency_ns = *(double *)ctx};
	return 0;
}

/* Two channels of two ranks: on each, a message of 1,024 bytes is reduced and sent back. */
static void reductions_of_a_rank_take_turns(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = SCHED_RING,
			  .n_ranks = 2,
			  .ranks_per_node = 1,
			  .n_channels = 2,
			  .elem_bytes = 4,
			  .bytes = 4096};
	double latency = 10;
	struct sim_cost cost = {.message = flat_cost, .ctx = &latency, .reduce_ns_per_byte = 2};
	struct sim_result r;
	struct err err = {""};

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(sim_run(&s, &cost, NULL, NULL, &r, &err), 0);
	assert_true(r.end_ns == 10 + 2 * 2048 + 10);
}

static void an_op_without_bytes_ends_at_the_last_start(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = SCHED_RING,
			  .n_ranks = 4,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 4};
	uint64_t seed = 1;
	struct sim_cost cost = {.message = random_cost, .ctx = &seed};
	double start[4] = {0, 7, 3, 0};
	struct sim_result r;
	struct err err = {""};

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(sim_run(&s, &cost, &(struct sim_ranks){.start_ns = start, .buffered = 1},
				 NULL, &r, &err),
			 0);
	assert_true(r.end_ns == 7 && r.n_messages == 0);
}

/* --- ports --------------------------------------------------------------------- */

static int plain_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		      uint64_t bytes, struct nbox_delay *ret)
{
	(void)src;
	(void)dst;
	(void)lane;
	(void)index;
	ret->latency_ns = *(double *)ctx;
	ret->occupancy_ns = (double)bytes;
	return 0;
}

struct seen {
	uint32_t src[16];
	double at[16];
	int n;
};

static void see(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		double sent_ns, double arrived_ns)
{
	struct seen *s = ctx;

	(void)dst;
	(void)lane;
	(void)index;
	(void)sent_ns;
	s->src[s->n] = src;
	s->at[s->n++] = arrived_ns;
}

static void flows_of_a_port_take_turns(void **state)
{
	struct port_flow flows[] = {
		{.src = 0,
		 .dst = 2,
		 .egress = 0,
		 .ingress = 2,
		 .order = 2,
		 .n_messages = 2,
		 .bytes = 15,
		 .chunk_bytes = 10},
		{.src = 0,
		 .dst = 3,
		 .egress = 0,
		 .ingress = 3,
		 .order = 3,
		 .n_messages = 3,
		 .bytes = 30,
		 .chunk_bytes = 10},
		{.src = 1,
		 .dst = 2,
		 .egress = 1,
		 .ingress = 2,
		 .order = 1,
		 .n_messages = 1,
		 .bytes = 12,
		 .chunk_bytes = 20},
	};
	double latency = 100;
	struct sim_cost cost = {.message = plain_cost, .ctx = &latency};
	struct seen seen = {.n = 0};
	struct sim_watch watch = {see, &seen};
	struct sim_result r;
	struct err err = {""};
	/* port 0 sends A0 0-10, B0 10-20, A1 20-25, B1 25-35, B2 35-45; into port 2 at 100
	 * come C (order 1: first) until 112 and A0 until 122, then A1 (at 120) until 127 */
	const double expected[] = {112, 120, 122, 127, 135, 145};
	const uint32_t from[] = {1, 0, 0, 0, 0, 0};

	(void)state;
	assert_int_equal(sim_ports(flows, 3, 4, &cost, NULL, &watch, &r, &err), 0);
	assert_int_equal(seen.n, 6);
	for (int i = 0; i < 6; i++) {
		assert_true(seen.at[i] == expected[i]);
		assert_int_equal(seen.src[i], from[i]);
	}
	assert_true(r.end_ns == 145 && r.n_messages == 6);
}

/* Whatever the costs, no port is busy for less time than its messages need, and every message comes
 * once, in the order of its connection. */
static void no_port_is_faster_than_its_messages(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 8);
	for (int i = 0; i < 300; i++) {
		struct sched s = {.kind = COLL_ALLTOALL + below(&r, 3),
				  .algo = SCHED_DIRECT,
				  .n_ranks = 1 + below(&r, 12),
				  .ranks_per_node = 1,
				  .n_channels = 1 + below(&r, 2),
				  .elem_bytes = 1,
				  .bytes = below(&r, 3000),
				  .chunk_bytes = 1 + below(&r, 1500),
				  .slices = 1 + below(&r, 2)};
		double latency = below(&r, 3) * 500, start[12] = {0}, latest = 0, bytes;
		struct sim_cost cost = {.message = plain_cost, .ctx = &latency};
		struct model m;
		struct sim_result result, again;
		struct err err = {""};

		s.root = below(&r, s.n_ranks);
		assert_int_equal(sched_init(&s, &err), 0);
		for (uint32_t n = 0; n < s.n_ranks; n++)
			latest = fmax(latest, start[n] = below(&r, 2) * below(&r, 900));
		model_init(&m, &s);
		assert_int_equal(sim_run(&s, &cost,
					 &(struct sim_ranks){.start_ns = start, .buffered = 1},
					 NULL, &result, &err),
				 0);
		assert_int_equal(sim_run(&s, &cost, NULL, NULL, &again, &err), 0);
		assert_int_equal(result.n_messages, sched_total_messages(&s));
		bytes = (double)s.bytes * (s.n_ranks - 1);
		if (bytes > 0) {
			assert_true(again.end_ns >= bytes + latency);
			assert_true(result.end_ns >= bytes + latency);
			assert_true(result.end_ns <= again.end_ns + latest + bytes);
			/* one port is busy all the time: an exact answer */
			if (s.kind != COLL_ALLTOALL)
				assert_true(again.end_ns == bytes + latency);
		}
		model_free(&m);
	}
}

/* --- ports of a direct schedule, obviously ------------------------------------ */

struct sent { /* a message that has left its port */
	uint32_t dst, order, flow;
	double enter_ns, occupancy_ns;
};

struct turn { /* a connection that leaves the port */
	struct sched_conn c;
	uint32_t order;
	uint64_t n_sent;
	double last_enter_ns, handed_ns;
};

struct slow_ports {
	const struct sched *s;
	const struct sim_ranks *ranks;
	double latency;
	struct sent *sent;
	uint32_t n_sent, n_flows;
};

static int by_turn(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->order != y->order ? (int)x->order - (int)y->order : x->c.lane - y->c.lane;
}

static int by_entry(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	if (x->enter_ns != y->enter_ns)
		return x->enter_ns < y->enter_ns ? -1 : 1;
	return x->order != y->order ? (int)x->order - (int)y->order : (int)x->flow - (int)y->flow;
}

/* Sends message after message of @rank: first come first served among those that need not wait for
 * the start of their destination. */
static void slow_sends(struct slow_ports *p, uint32_t rank, struct turn *turns, uint32_t n)
{
	double now = fmax(p->ranks->start_ns[rank], p->ranks->busy_ns[rank]), came[64] = {0};
	uint64_t ticket[64], next_ticket = n;

	for (uint32_t i = 0; i < n; i++)
		ticket[i] = i;
	while (!isinf(now)) {
		uint32_t best = n;

		for (uint32_t i = 0; i < n; i++) {
			if (turns[i].n_sent == turns[i].c.n_messages)
				continue;
			if (best == n || came[i] < came[best] ||
			    (came[i] == came[best] && ticket[i] < ticket[best]))
				best = i;
		}
		if (best == n || isinf(came[best]))
			break;

		struct turn *t = &turns[best];
		double start = p->ranks->start_ns[t->c.dst];
		double bytes =
			(double)sched_message_bytes(p->s, rank, t->c.dst, t->c.lane, t->n_sent);

		now = fmax(now, came[best]);
		t->last_enter_ns = fmax(t->last_enter_ns, now + p->latency);
		p->sent[p->n_sent++] = (struct sent){t->c.dst, t->order, p->n_flows + best,
						     t->last_enter_ns, bytes};
		now += bytes;
		p->ranks->free_ns[rank] = now;
		if (++t->n_sent + p->ranks->buffered == t->c.n_messages)
			t->handed_ns = fmax(now, start);
		/* back in the queue: now, or when it is woken; those woken at once come behind */
		came[best] = t->n_sent >= p->ranks->buffered ? fmax(now, start) : now;
		ticket[best] = came[best] > now ? UINT64_MAX / 2 + best : next_ticket++;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool all = turns[i].n_sent == turns[i].c.n_messages;

		p->ranks->end_ns[rank] =
			fmax(p->ranks->end_ns[rank], all ? turns[i].handed_ns : INFINITY);
		if (!all)
			p->ranks->free_ns[rank] = p->ranks->end_ns[turns[i].c.dst] = INFINITY;
	}
	p->n_flows += n;
}

static void slow_run(const struct sched *s, const struct sim_ranks *ranks, double latency)
{
	struct slow_ports p = {s, ranks, latency, malloc(1 << 22), 0, 0};
	double in_free[64] = {0};

	for (uint32_t r = 0; r < s->n_ranks; r++) {
		ranks->end_ns[r] = ranks->start_ns[r];
		ranks->free_ns[r] = 0;
	}
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		struct turn turns[64] = {0};
		struct sched_conn *conns;
		uint32_t n_in, n_out;

		assert_int_equal(sched_conns(s, r, &conns, &n_in, &n_out), 0);
		for (uint32_t i = 0; i < n_out; i++) {
			turns[i].c = conns[n_in + i];
			turns[i].order = (turns[i].c.dst + s->n_ranks - r) % s->n_ranks;
		}
		free(conns);
		qsort(turns, n_out, sizeof(*turns), by_turn);
		slow_sends(&p, r, turns, n_out);
	}
	qsort(p.sent, p.n_sent, sizeof(*p.sent), by_entry);
	for (uint32_t i = 0; i < p.n_sent; i++) {
		uint32_t dst = p.sent[i].dst;

		in_free[dst] = fmax(in_free[dst], p.sent[i].enter_ns) + p.sent[i].occupancy_ns;
		ranks->end_ns[dst] = fmax(ranks->end_ns[dst], in_free[dst]);
	}
	free(p.sent);
}

static void ports_take_the_time_of_the_slow_model(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 14);
	for (int i = 0; i < 2000; i++) {
		struct sched s = {.kind = COLL_ALLTOALL + below(&r, 3),
				  .algo = SCHED_DIRECT,
				  .n_ranks = 1 + below(&r, 12),
				  .ranks_per_node = 1,
				  .n_channels = 1 + below(&r, 2),
				  .elem_bytes = 1,
				  .bytes = below(&r, 3000),
				  .chunk_bytes = 1 + below(&r, 900)};
		double latency = below(&r, 3) * 500;
		double start[12] = {0}, busy[12] = {0}, ends[2][12], ports[2][12];
		struct sim_ranks ranks = {start, busy, 1 + below(&r, 4), ends[0], ports[0]};
		struct sim_cost cost = {.message = plain_cost, .ctx = &latency};
		struct sim_result result;
		struct err err = {""};

		s.root = below(&r, s.n_ranks);
		assert_int_equal(sched_init(&s, &err), 0);
		for (uint32_t n = 0; below(&r, 4) && n < s.n_ranks; n++)
			start[n] = below(&r, 60) ? rng_uniform(&r) * 9000 : INFINITY;
		for (uint32_t n = 0; below(&r, 4) == 0 && n < s.n_ranks; n++)
			busy[n] = rng_uniform(&r) * 9000;
		slow_run(&s, &ranks, latency);
		ranks.end_ns = ends[1];
		ranks.free_ns = ports[1];
		assert_int_equal(sim_run(&s, &cost, &ranks, NULL, &result, &err), 0);
		for (uint32_t n = 0; n < s.n_ranks; n++)
			if (ends[0][n] != ends[1][n] || ports[0][n] != ports[1][n])
				fail_msg("case %d, %s: rank %u of %u ends at %g, port %g, not %g, "
					 "%g",
					 i, coll_kind_name(s.kind), n, s.n_ranks, ends[1][n],
					 ports[1][n], ends[0][n], ports[0][n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_take_the_time_of_the_slow_model),
		cmocka_unit_test(reductions_of_a_rank_take_turns),
		cmocka_unit_test(an_op_without_bytes_ends_at_the_last_start),
		cmocka_unit_test(flows_of_a_port_take_turns),
		cmocka_unit_test(no_port_is_faster_than_its_messages),
		cmocka_unit_test(ports_take_the_time_of_the_slow_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
