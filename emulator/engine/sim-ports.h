/* Event simulation of messages that wait for no other message but share the ports
 * of their ranks: all-to-all, gather, scatter, point-to-point groups. */
#pragma once

#include "engine/sim-cost.h"
#include "engine/sim-ranks.h"
#include "schedule/schedule.h"

/* One connection. */
struct port_flow {
	uint32_t src, dst; /* comm ranks, as the cost and the watch are told */
	uint16_t lane;
	uint32_t egress, ingress; /* ports: below n_ports */
	uint64_t order;           /* who is first into an ingress port at the same time */
	uint64_t n_messages;
	const struct sched *sched;   /* says the sizes, borrowed; NULL: */
	uint64_t bytes, chunk_bytes; /* message i has chunk_bytes, the last one the rest */
};

/**
 * sim_ports - @flows: those of one egress port in the order in which they take turns
 * @ranks: of the ports; NULL: all start at 0
 *
 * A port sends one message at a time; the flows of a port take turns: a flow's next
 * message queues up when the one before has left. It reaches the ingress port of its
 * destination after the latency, and occupies that one as long, first come first
 * served; then it has arrived. Uncontended that is occupancy + latency. The buffers take what comes
 * before the destination has started; a flow of more messages than they hold waits for it.
 *
 * Return: 0; -ENOMEM; a cost's own error.
 */
int sim_ports(const struct port_flow *flows, uint32_t n_flows, uint32_t n_ports,
	      const struct sim_cost *cost, const struct sim_ranks *ranks,
	      const struct sim_watch *watch, struct sim_result *ret, struct err *err);

/* The same for a direct schedule. @period, a divisor of n_ranks: the caller says that ranks r and
 * r + period do the same. Only flows from ranks below @period are simulated, and what they do at
 * other ranks happens at those ranks modulo @period. n_ranks: everything is simulated. */
int sim_ports_sched(const struct sched *s, uint32_t period, const struct sim_cost *cost,
		    const struct sim_ranks *ranks, const struct sim_watch *watch,
		    struct sim_result *ret, struct err *err);
