/* What each rank brings to a simulation of an op, and what it takes from there. */
#pragma once

#include <stdint.h>

#include "schedule/sched.h"

/* Arrays of n_ranks values (sim_ports(): n_ports), borrowed. */
struct sim_ranks {
	const double *start_ns; /* NULL: all 0; INFINITY: the rank never comes */
	const double *busy_ns; /* when its port is free for the op's messages; NULL: at the start */
	uint64_t buffered; /* >= 1: messages of a connection that a rank may leave to its port */
	/* out; NULL: not wanted. INFINITY: never */
	double *end_ns;  /* its last receive is there, and its sends are handed over */
	double *free_ns; /* its port has sent all; 0 without messages */
};

#define SIM_BUFFER_STEPS UINT64_C(8)         /* NCCL_STEPS */
#define SIM_BUFFER_BYTES (UINT64_C(4) << 20) /* NCCL_BUFFSIZE, of a channel */

/* NCCL's buffers take 8 steps, or 4 MiB where a message is larger than a step of NCCL's; at least
 * the one message that is being sent. */
static inline uint64_t sim_buffered(const struct sched *s)
{
	uint64_t bytes = s->chunk_bytes ? s->chunk_bytes : SCHED_CHUNK_DEFAULT;
	uint64_t steps = SIM_BUFFER_BYTES / bytes;

	if (steps > SIM_BUFFER_STEPS)
		steps = SIM_BUFFER_STEPS;
	return (steps ? steps : 1) * (s->slices ? s->slices : 1);
}

static inline double sim_start_of(const struct sim_ranks *r, uint32_t rank)
{
	return r && r->start_ns ? r->start_ns[rank] : 0;
}

/* When the rank's port may send the op's first message. */
static inline double sim_port_of(const struct sim_ranks *r, uint32_t rank)
{
	double start = sim_start_of(r, rank);

	return r && r->busy_ns && r->busy_ns[rank] > start ? r->busy_ns[rank] : start;
}
