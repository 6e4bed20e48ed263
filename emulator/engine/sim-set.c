/* See sim-set.h. */
#include "engine/sim-set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/sim-net.h"
#include "engine/sim-op.h"

struct set {
	struct sim_set_op *ops;
	uint32_t n;
	struct sim *sims; /* owned */
	struct sim_heap heap;
	struct sim_net net;
	uint32_t *op_of;  /* owned, by flow */
	uint64_t *n_left; /* owned: messages of each op that have not arrived */
};

static void set_deinit(struct set *set)
{
	for (uint32_t i = 0; set->sims && i < set->n; i++)
		sim_deinit(&set->sims[i]);
	free(set->sims);
	free(set->op_of);
	free(set->n_left);
	sim_heap_deinit(&set->heap);
	sim_net_deinit(&set->net);
}

static int left(void *ctx, uint32_t flow, double sent_ns, double latency_ns, double now_ns,
		bool is_idle)
{
	struct set *set = ctx;
	struct sim *sim = &set->sims[set->op_of[flow]];

	return sim_left(sim, flow - sim->first_flow, sent_ns, latency_ns, now_ns, is_idle);
}

static int add_flows(struct set *set, uint32_t op)
{
	struct sim *sim = &set->sims[op];
	const struct sim_set_op *o = &set->ops[op];
	uint32_t n = sim->conn_start[sim->s->n_ranks];
	uint64_t links[SIM_SET_LINKS];
	double bytes_per_ns[SIM_SET_LINKS];
	int r = 0;

	sim->first_flow = set->net.n_flows;
	for (uint32_t i = 0; i < n && !r; i++) {
		const struct sim_conn *c = &sim->conns[i];
		int k = o->links(o->cost->ctx, c->src, c->dst, c->lane, links, bytes_per_ns);

		r = k < 0 ? k : sim_net_add_flow(&set->net, op);
		for (int l = 0; l < k && !r; l++)
			r = sim_net_add_use(&set->net, links[l], bytes_per_ns[l]);
	}
	return r;
}

static int find_shared(struct set *set)
{
	int r = sim_net_make_parts(&set->net);

	set->op_of = malloc((set->net.n_flows + 1) * sizeof(*set->op_of));
	if (r || !set->op_of)
		return -ENOMEM;
	for (uint32_t op = 0; op < set->n; op++) {
		struct sim *sim = &set->sims[op];
		uint32_t n = sim->conn_start[sim->s->n_ranks];

		for (uint32_t i = 0; i < n; i++) {
			set->op_of[sim->first_flow + i] = op;
			sim->conns[i].is_shared = sim_net_is_shared(&set->net, sim->first_flow + i);
		}
	}
	return 0;
}

static int set_init(struct set *set, struct err *err)
{
	int r = 0;

	set->net.heap = &set->heap;
	set->net.sink = (struct sim_net_sink){left, set};
	set->sims = calloc(set->n + 1, sizeof(*set->sims));
	set->n_left = calloc(set->n + 1, sizeof(*set->n_left));
	if (!set->sims || !set->n_left)
		return err_set(err, ENOMEM, "no memory for %u ops", set->n);
	for (uint32_t i = 0; i < set->n && !r; i++) {
		set->n_left[i] = sched_total_messages(set->ops[i].s);
		set->sims[i] = (struct sim){.s = set->ops[i].s,
					    .cost = set->ops[i].cost,
					    .heap = &set->heap,
					    .number = i,
					    .net = &set->net,
					    .wire_factor = set->ops[i].wire_factor};
		r = sim_init(&set->sims[i], err);
		if (!r && add_flows(set, i))
			r = err_set(err, ENOMEM, "no memory for the paths of op %u", i);
	}
	if (!r && find_shared(set))
		r = err_set(err, ENOMEM, "no memory for %u connections", set->net.n_flows);
	return r;
}

/* Op @i is over: those begin that wait for it. */
static int end_op(struct set *set, uint32_t i)
{
	struct sim_set_op *op = &set->ops[i];
	int r = 0;

	op->end_ns = set->sims[i].end_ns + op->base_ns;
	for (uint32_t k = i + 1; k < set->n && !r; k++)
		if (set->ops[k].after == i)
			r = sim_heap_push(&set->heap, fmax(op->end_ns, set->ops[k].start_ns),
					  (uint64_t)SIM_BEGINS << 62 | k);
	return r;
}

static int begin_op(struct set *set, uint32_t i, double now_ns)
{
	int r;

	set->ops[i].begin_ns = now_ns;
	r = sim_start(&set->sims[i], now_ns);
	return r || set->n_left[i] ? r : end_op(set, i);
}

static int handle(struct set *set, uint64_t tie, double now_ns)
{
	uint32_t op = (uint32_t)(tie >> 32);
	int r;

	if (sim_kind(tie) != SIM_ARRIVED) {
		sim_heap_drop(&set->heap);
		return sim_kind(tie) == SIM_BEGINS ? begin_op(set, (uint32_t)tie, now_ns)
						   : sim_net_event(&set->net, tie);
	}
	r = sim_arrive(&set->sims[op], (uint32_t)tie);
	return r || --set->n_left[op] ? r : end_op(set, op);
}

static int run_events(struct set *set)
{
	int r = 0;

	for (uint32_t i = 0; i < set->n && !r; i++)
		if (set->ops[i].after == SIM_SET_NONE)
			r = sim_heap_push(&set->heap, set->ops[i].start_ns,
					  (uint64_t)SIM_BEGINS << 62 | i);
	while (set->heap.n && !r) {
		uint64_t time = set->heap.items[0].time;
		double now_ns = sim_event_ns(&set->heap.items[0]);

		set->net.now_ns = now_ns;
		while (set->heap.n && set->heap.items[0].time == time && !r)
			r = handle(set, set->heap.items[0].tie, now_ns);
		if (!r)
			r = sim_net_settle(&set->net);
	}
	return r;
}

int sim_set_run(struct sim_set_op *ops, uint32_t n, struct sim_set_result *ret, struct err *err)
{
	struct set set = {.ops = ops, .n = n};
	int r = set_init(&set, err), e;

	if (!r) {
		e = run_events(&set);
		for (uint32_t i = 0; i < n && !r; i++)
			r = sim_end(&set.sims[i], e, err);
		*ret = (struct sim_set_result){.n_solved = set.net.n_solved,
					       .n_found = set.net.n_found};
		for (uint32_t i = 0; i < n; i++) {
			ret->end_ns = fmax(ret->end_ns, ops[i].end_ns);
			ret->n_messages += set.sims[i].n_messages;
		}
	}
	set_deinit(&set);
	return r;
}
