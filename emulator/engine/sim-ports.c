/* See sim-ports.h. There are four kinds of event: a message has left its port (the next one in the
 * queue starts); a message has reached the ingress port of its destination (it gets its slot
 * there); a message has arrived; a flow need no longer wait for the start of its destination. At
 * equal times arrivals come first, then departures, then entries by the order of their flows, then
 * flows that waited: when an event was made does not matter. Each message has a node
 * between its start and its arrival; nodes are used again. */
#include "engine/sim-ports.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/sim-heap.h"

#define NONE UINT32_MAX

enum { KIND_ARRIVED, KIND_LEFT, KIND_ENTERED, KIND_WOKEN };

struct flow_state {
	double last_enter_ns;
	double handed_ns; /* when the rest of its messages fits the buffers */
	uint64_t n_sent, n_arrived;
	uint32_t next;             /* in its port's queue */
	uint32_t head, tail;       /* nodes on their way to the ingress port */
	uint32_t in_head, in_tail; /* nodes in or behind the ingress port */
};

struct port {
	double in_free_ns;
	double end_ns, free_ns; /* see struct sim_ranks */
	uint32_t sending;       /* flow, or NONE */
	uint32_t head, tail;    /* flows that wait */
};

struct node {
	double sent_ns, enter_ns, occupancy_ns, at_ns;
	uint32_t next;
};

struct ports {
	const struct port_flow *flows;
	const struct sim_cost *cost;
	const struct sim_ranks *ranks;
	const struct sim_watch *watch;
	struct flow_state *state; /* owned */
	struct port *port;        /* owned */
	struct node *nodes;       /* owned */
	uint32_t n_nodes, capacity_nodes, free_node;
	struct sim_heap heap;
	double end_ns;
	uint64_t n_messages;
};

/* kind, then order, then who: 2 + 30 + 32 bits. */
static uint64_t tie_of(unsigned kind, uint64_t order, uint32_t who)
{
	return (uint64_t)kind << 62 | (order & 0x3fffffff) << 32 | who;
}

static int node_new(struct ports *p, uint32_t *ret)
{
	uint32_t capacity;
	struct node *grown;

	if (p->free_node != NONE) {
		*ret = p->free_node;
		p->free_node = p->nodes[*ret].next;
		return 0;
	}
	if (p->n_nodes == p->capacity_nodes) {
		capacity = p->capacity_nodes ? 2 * p->capacity_nodes : 1024;
		grown = capacity < NONE / 2 ? realloc(p->nodes, capacity * sizeof(*grown)) : NULL;
		if (!grown)
			return -ENOMEM;
		p->nodes = grown;
		p->capacity_nodes = capacity;
	}
	*ret = p->n_nodes++;
	return 0;
}

static void list_add(struct node *nodes, uint32_t *head, uint32_t *tail, uint32_t node)
{
	nodes[node].next = NONE;
	if (*head == NONE)
		*head = node;
	else
		nodes[*tail].next = node;
	*tail = node;
}

static uint64_t message_bytes(const struct port_flow *f, uint64_t index)
{
	if (f->sched)
		return sched_message_bytes(f->sched, f->src, f->dst, f->lane, index);
	return index + 1 < f->n_messages ? f->chunk_bytes : f->bytes - index * f->chunk_bytes;
}

/* Whether the flow's next message finds the buffers of its destination full, because nobody has
 * started there. */
static bool is_held(const struct ports *p, uint32_t flow, double now_ns)
{
	return p->ranks && p->state[flow].n_sent >= p->ranks->buffered &&
	       sim_start_of(p->ranks, p->flows[flow].ingress) > now_ns;
}

static int queue_flow(struct ports *p, uint32_t flow, double now_ns)
{
	const struct port_flow *f = &p->flows[flow];
	struct port *port = &p->port[f->egress];
	double start;

	if (p->state[flow].n_sent == f->n_messages)
		return 0;
	if (is_held(p, flow, now_ns)) {
		start = sim_start_of(p->ranks, f->ingress);
		return isinf(start)
			       ? 0
			       : sim_heap_push(&p->heap, start, tie_of(KIND_WOKEN, f->order, flow));
	}
	p->state[flow].next = NONE;
	if (port->head == NONE)
		port->head = flow;
	else
		p->state[port->tail].next = flow;
	port->tail = flow;
	return 0;
}

/* A sender is done with a flow when the rest of its messages fits the buffers, and its receiver is
 * there to empty them. */
static void hand_over(const struct ports *p, const struct port_flow *f, struct flow_state *s,
		      double left_ns)
{
	s->n_sent++;
	p->port[f->egress].free_ns = left_ns;
	if (p->ranks && s->n_sent + p->ranks->buffered == f->n_messages)
		s->handed_ns = fmax(left_ns, sim_start_of(p->ranks, f->ingress));
}

/* Starts the next message of a port, if one waits. */
static int start_next(struct ports *p, uint32_t number, double now_ns)
{
	struct port *port = &p->port[number];
	uint32_t flow = port->head, node;
	const struct port_flow *f;
	struct flow_state *s;
	struct nbox_delay d;
	double enter;
	int r;

	if (flow == NONE)
		return 0;
	f = &p->flows[flow];
	s = &p->state[flow];
	port->head = s->next;
	port->sending = flow;
	r = p->cost->message(p->cost->ctx, f->src, f->dst, f->lane, s->n_sent,
			     message_bytes(f, s->n_sent), &d);
	if (!r)
		r = node_new(p, &node);
	if (r)
		return r;
	enter = now_ns + d.latency_ns;
	if (enter < s->last_enter_ns)
		enter = s->last_enter_ns;
	s->last_enter_ns = enter;
	hand_over(p, f, s, now_ns + d.occupancy_ns);
	p->nodes[node] = (struct node){now_ns, enter, d.occupancy_ns, 0, NONE};
	if (s->head == NONE)
		r = sim_heap_push(&p->heap, enter, tie_of(KIND_ENTERED, f->order, flow));
	list_add(p->nodes, &s->head, &s->tail, node);
	if (r)
		return r;
	return sim_heap_push(&p->heap, now_ns + d.occupancy_ns, tie_of(KIND_LEFT, 0, number));
}

static int left(struct ports *p, uint32_t number, double now_ns)
{
	struct port *port = &p->port[number];
	uint32_t flow = port->sending;

	port->sending = NONE;
	if (flow != NONE && queue_flow(p, flow, now_ns))
		return -ENOMEM;
	return start_next(p, number, now_ns);
}

static int woken(struct ports *p, uint32_t flow, double now_ns)
{
	uint32_t egress = p->flows[flow].egress;
	int r = queue_flow(p, flow, now_ns);

	return r || p->port[egress].sending != NONE ? r : start_next(p, egress, now_ns);
}

static int entered(struct ports *p, uint32_t flow, double now_ns)
{
	const struct port_flow *f = &p->flows[flow];
	struct flow_state *s = &p->state[flow];
	struct port *port = &p->port[f->ingress];
	uint32_t node = s->head;
	double begin = now_ns > port->in_free_ns ? now_ns : port->in_free_ns;
	int r;

	s->head = p->nodes[node].next;
	if (s->head != NONE) {
		r = sim_heap_push(&p->heap, p->nodes[s->head].enter_ns,
				  tie_of(KIND_ENTERED, f->order, flow));
		if (r)
			return r;
	}
	port->in_free_ns = begin + p->nodes[node].occupancy_ns;
	p->nodes[node].at_ns = port->in_free_ns;
	r = s->in_head == NONE ? sim_heap_push(&p->heap, port->in_free_ns,
					       tie_of(KIND_ARRIVED, f->order, flow))
			       : 0;
	list_add(p->nodes, &s->in_head, &s->in_tail, node);
	return r;
}

static int arrived(struct ports *p, uint32_t flow, double now_ns)
{
	const struct port_flow *f = &p->flows[flow];
	struct flow_state *s = &p->state[flow];
	uint32_t node = s->in_head;

	if (p->watch)
		p->watch->arrived(p->watch->ctx, f->src, f->dst, f->lane, s->n_arrived,
				  p->nodes[node].sent_ns, now_ns);
	s->n_arrived++;
	p->n_messages++;
	if (now_ns > p->end_ns)
		p->end_ns = now_ns;
	if (now_ns > p->port[f->ingress].end_ns)
		p->port[f->ingress].end_ns = now_ns;
	s->in_head = p->nodes[node].next;
	p->nodes[node].next = p->free_node;
	p->free_node = node;
	return s->in_head == NONE ? 0
				  : sim_heap_push(&p->heap, p->nodes[s->in_head].at_ns,
						  tie_of(KIND_ARRIVED, f->order, flow));
}

static int ports_init(struct ports *p, uint32_t n_flows, uint32_t n_ports)
{
	uint32_t i;

	p->free_node = NONE;
	p->state = calloc((size_t)n_flows + 1, sizeof(*p->state));
	p->port = calloc((size_t)n_ports + 1, sizeof(*p->port));
	if (!p->state || !p->port)
		return -ENOMEM;
	for (i = 0; i < n_ports; i++) {
		struct port *port = &p->port[i];

		double start = sim_start_of(p->ranks, i), sends = sim_port_of(p->ranks, i);

		port->sending = port->head = NONE;
		port->end_ns = start;
		if (start > p->end_ns)
			p->end_ns = start;
		if (!isinf(sends) && sim_heap_push(&p->heap, sends, tie_of(KIND_LEFT, 0, i)))
			return -ENOMEM;
	}
	for (i = 0; i < n_flows; i++) {
		p->state[i].head = p->state[i].in_head = NONE;
		if (queue_flow(p, i, 0))
			return -ENOMEM;
	}
	return 0;
}

static int ports_run(struct ports *p)
{
	int r = 0;

	while (p->heap.n && !r) {
		struct sim_event e = p->heap.items[0];
		double now = sim_event_ns(&e);
		uint32_t who = (uint32_t)e.tie;

		sim_heap_drop(&p->heap);
		switch (e.tie >> 62) {
		case KIND_ARRIVED:
			r = arrived(p, who, now);
			break;
		case KIND_LEFT:
			r = left(p, who, now);
			break;
		case KIND_WOKEN:
			r = woken(p, who, now);
			break;
		default:
			r = entered(p, who, now);
			break;
		}
	}
	return r;
}

/* What the caller wants to know of each port. */
static void tell_ranks(struct ports *p, uint32_t n_flows, uint32_t n_ports)
{
	uint32_t i;

	for (i = 0; i < n_flows; i++) {
		const struct flow_state *s = &p->state[i];
		struct port *from = &p->port[p->flows[i].egress];
		struct port *to = &p->port[p->flows[i].ingress];
		bool is_sent = s->n_sent == p->flows[i].n_messages;

		from->end_ns = fmax(from->end_ns, is_sent ? s->handed_ns : INFINITY);
		from->free_ns = is_sent ? from->free_ns : INFINITY;
		if (s->n_arrived < p->flows[i].n_messages)
			to->end_ns = INFINITY;
	}
	for (i = 0; i < n_ports; i++) {
		if (p->ranks->end_ns)
			p->ranks->end_ns[i] = p->port[i].end_ns;
		if (p->ranks->free_ns)
			p->ranks->free_ns[i] = p->port[i].free_ns;
	}
}

int sim_ports(const struct port_flow *flows, uint32_t n_flows, uint32_t n_ports,
	      const struct sim_cost *cost, const struct sim_ranks *ranks,
	      const struct sim_watch *watch, struct sim_result *ret, struct err *err)
{
	struct ports p = {.flows = flows, .cost = cost, .ranks = ranks, .watch = watch};
	int r = ports_init(&p, n_flows, n_ports);

	if (!r)
		r = ports_run(&p);
	if (!r && ranks)
		tell_ranks(&p, n_flows, n_ports);
	if (!r)
		*ret = (struct sim_result){.end_ns = p.end_ns, .n_messages = p.n_messages};
	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory to simulate %u connections", n_flows);
	free(p.state);
	free(p.port);
	free(p.nodes);
	sim_heap_deinit(&p.heap);
	return r;
}

/* Appends the flows that leave @rank. */
static int add_flows(const struct sched *s, uint32_t rank, uint32_t period,
		     struct port_flow **flows, uint32_t *n_flows, uint32_t *capacity)
{
	CLEANUP(freep) struct sched_conn *conns = NULL;
	struct port_flow *grown;
	uint32_t n_in, n_out, i;
	int r = sched_conns(s, rank, &conns, &n_in, &n_out);

	if (r)
		return r;
	if (*n_flows + n_out > *capacity) {
		*capacity = 2 * *capacity + n_out;
		grown = realloc(*flows, *capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		*flows = grown;
	}
	/* A rank sends to the next rank first and goes round from there, so that no rank is
	 * everybody's first. */
	for (i = 0; i < n_out; i++) {
		const struct sched_conn *c = &conns[n_in + i];

		(*flows)[(*n_flows)++] = (struct port_flow){
			.src = c->src,
			.dst = c->dst,
			.lane = c->lane,
			.egress = c->src % period,
			.ingress = c->dst % period,
			.order = (c->dst + s->n_ranks - c->src) % s->n_ranks,
			.n_messages = c->n_messages,
			.sched = s,
		};
	}
	return 0;
}

static int by_turn(const void *a, const void *b)
{
	const struct port_flow *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

int sim_ports_sched(const struct sched *s, uint32_t period, const struct sim_cost *cost,
		    const struct sim_ranks *ranks, const struct sim_watch *watch,
		    struct sim_result *ret, struct err *err)
{
	CLEANUP(freep) struct port_flow *flows = NULL;
	uint32_t n_flows = 0, capacity = 0, r, first;

	for (r = 0; r < period; r++) {
		first = n_flows;
		if (add_flows(s, r, period, &flows, &n_flows, &capacity))
			return err_set(err, ENOMEM, "no memory for the connections of rank %u", r);
		if (n_flows > first)
			qsort(flows + first, n_flows - first, sizeof(*flows), by_turn);
	}
	return sim_ports(flows, n_flows, period, cost, ranks, watch, ret, err);
}
