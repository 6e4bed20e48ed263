/* When an op ends, and when each border message may be released: by closed form
 * or symmetry where that is exact, else by event simulation. One answer serves
 * all three depths of exchange. */
#pragma once

#include <stdint.h>

#include "engine/border.h"
#include "engine/delay.h"
#include "schedule/schedule.h"
#include "topology/membership.h"
#include "topology/topology.h"

enum solve_how { SOLVE_OP, SOLVE_SYMMETRY, SOLVE_SIM };

struct timing {
	double model_ns; /* what the base model alone gives */
	double end_ns;   /* with all what-ifs but without arrivals; >= 0 */
	enum solve_how how;
	uint32_t is_of_model; /* model_ns is what the model says of the whole op, not of the
				 schedule's messages */
	double bound_ns;      /* physical lower bound: bytes over the port's bandwidth */
	/* Release time of message i of in-connection c of the border is
	 * at[offset[c] + i] where at is not NULL, else first[c] + i * step[c]; all
	 * relative to the op's start, never later than end_ns. Use
	 * timing_message_ns(). NULL without a border. Owned. */
	double *first, *step, *at;
	uint64_t *offset; /* n_in + 1 */
	uint32_t n_in;
};

/* More than this is not simulated, but refused with a sentence: it would take nboxd
 * minutes, or gigabytes. */
#define SOLVE_MAX_MESSAGES (UINT64_C(1) << 28)
#define SOLVE_MAX_PAIRS (UINT64_C(1) << 23)

/**
 * solve - @border may be NULL (exchange none)
 * @force_sim: event simulation even where symmetry would do (tests, bench)
 * A border of COLL_SENDRECV is solved by solve_p2p() only.
 *
 * Return: 0; -EINVAL with a sentence when no model answers; -ENOMEM.
 */
int solve(const struct sched *s, const struct topology *t, const struct membership *m,
	  struct delay_chain *d, const struct border *border, uint64_t op_number, int force_sim,
	  struct timing *ret, struct err *err);

/* The same for a group of point-to-point calls: arguments as border_make_p2p().
 * Sends of virtual ranks are there from the start; each rank's egress and
 * ingress port is shared by its messages. */
int solve_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
	      const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
	      const struct membership *m, struct delay_chain *d, const struct border *border,
	      uint64_t op_number, struct timing *ret, struct err *err);

/* A solver that keeps the message times of the last ops and gives them again for
 * equal ops when the chain is steady: what a training job repeats costs one
 * look-up. Not thread-safe. */
struct solver;
int solver_new(const struct topology *t, struct delay_chain *d, struct solver **ret);
struct solver *solver_free(struct solver *s);
/* As solve(), without force_sim. @m must describe the same ranks whenever @comm,
 * a number of the caller, is the same. */
int solver_solve(struct solver *s, uint32_t comm, const struct sched *sched,
		 const struct membership *m, const struct border *border, uint64_t op_number,
		 struct timing *ret, struct err *err);
void timing_deinit(struct timing *t);
double timing_message_ns(const struct timing *t, uint32_t in_conn, uint64_t index);

/* bytes over bandwidth: no op on this cluster can be faster. Source: each rank
 * must send and receive at least this much (2(n-1)/n * S for AllReduce, ...). */
double solve_bound_ns(const struct sched *s, const struct topology *t);
