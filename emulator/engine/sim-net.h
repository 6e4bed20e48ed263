/* Messages in flight of several ops share links. A connection ("flow") sends one message at a time;
 * each connection gets as much of a link as any other that wants more (contention/share.h), and
 * none is faster than alone. What messages of one op do to each other is in their costs: a link is
 * shared where messages of two ops are on it. Flows that meet on links, directly or by others, are
 * a part of the network; where something changes in a part, its speeds are worked out again, or
 * found again, for a part does the same again and again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/number-table.h"
#include "contention/share.h"
#include "engine/sim-heap.h"
#include "nbox-delaymodel.h"

/* The message of @flow that began to leave at @sent_ns has left; @is_idle: none waits behind it. */
struct sim_net_sink {
	int (*left)(void *ctx, uint32_t flow, double sent_ns, double latency_ns, double now_ns,
		    bool is_idle);
	void *ctx;
};

struct sim_net {
	struct sim_heap *heap;
	struct sim_net_sink sink;
	double now_ns;          /* set by the caller before events of that time */
	struct net_flow *flows; /* owned */
	uint32_t n_flows, flows_capacity;
	struct net_use *uses; /* owned: the links of flows, then of paths */
	uint32_t n_uses, uses_capacity;
	struct net_link *links; /* owned */
	uint32_t n_links, links_capacity;
	struct net_load *loads; /* owned: of an op on a link */
	uint32_t n_loads, loads_capacity;
	struct net_path *paths; /* owned */
	uint32_t n_paths, paths_capacity;
	struct net_kind *kinds; /* owned */
	uint32_t n_kinds, kinds_capacity;
	struct number_table of_link, of_load, of_path, of_kind;
	struct net_part *parts; /* owned */
	uint32_t n_parts;
	struct net_wait *waits; /* owned: messages that have not left */
	uint32_t n_waits, waits_capacity, free_wait;
	uint32_t *changed; /* owned: parts */
	uint32_t n_changed;
	uint32_t *finished; /* owned: flows */
	/* speeds by the set of messages of a part */
	struct net_set *sets;     /* owned: an open hash table */
	struct net_speed *speeds; /* owned */
	uint32_t n_sets, n_slots;
	uint32_t n_speeds, speeds_capacity;
	/* room for one part */
	struct share share;
	struct share_user *users;
	struct share_use *user_uses;
	double *solved;
	uint32_t users_capacity, user_uses_capacity, solved_capacity;
	uint32_t round;
	uint64_t n_solved, n_found; /* how often */
};

/* The events' kinds, in the two highest bits of a tie; 0: an arrival. */
enum { SIM_ARRIVED, SIM_READY, SIM_LEFT, SIM_BEGINS };
static inline unsigned sim_kind(uint64_t tie)
{
	return (unsigned)(tie >> 62);
}

void sim_net_deinit(struct sim_net *n);
/* The next flow, of op @op. It takes its links by sim_net_add_use(). Return: 0; -ENOMEM. */
int sim_net_add_flow(struct sim_net *n, uint32_t op);
int sim_net_add_use(struct sim_net *n, uint64_t link, double bytes_per_ns);
/* All flows are there. Return: 0; -ENOMEM. */
int sim_net_make_parts(struct sim_net *n);
bool sim_net_is_shared(const struct sim_net *n, uint32_t flow);

/* A message for a shared flow, of @bytes on the wire. Return: 0; -ENOMEM; the sink's. */
int sim_net_send(struct sim_net *n, uint32_t flow, double ready_ns, double bytes,
		 const struct nbox_delay *d);
/* An event of kind SIM_READY or SIM_LEFT, which is no longer in the heap. */
int sim_net_event(struct sim_net *n, uint64_t tie);
/* All events of this time are over: speeds change. Return: 0; -ENOMEM. */
int sim_net_settle(struct sim_net *n);
