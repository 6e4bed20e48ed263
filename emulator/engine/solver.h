/* A solver that remembers. */
#pragma once

#include "engine/delay.h"
#include "engine/ends.h"
#include "engine/solve-p2p.h"
#include "engine/timing.h"
#include "engine/usage-op.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

/* Keeps the times of the last ops and gives them again for equal ops where the chain is steady. A
 * training job repeats a handful of ops: each costs one look-up. Not thread-safe. */
struct solver;
int solver_new(const struct topology *t, struct delay_chain *d, struct solver **ret);
struct solver *solver_free(struct solver *s);
/* @comm is gone, and its number is not given again: what its ops put on links is forgotten. Times
 * go by themselves, the oldest first. */
void solver_forget(struct solver *s, uint32_t comm);
/* As solve(), without force_sim. @m must describe the same ranks whenever @comm,
 * a number of the caller, is the same. */
int solver_solve(struct solver *s, uint32_t comm, const struct sched *sched,
		 const struct membership *m, const struct border *border, uint64_t op_number,
		 struct timing *ret, struct err *err);
/* The ends of that op's ranks, kept with its times. @timing: solver_solve()'s answer; @is_plain:
 * without the what-ifs. The caller owns a reference. */
int solver_ends(struct solver *s, uint32_t comm, const struct sched *sched,
		const struct membership *m, const struct border *border, uint64_t op_number,
		const struct timing *timing, bool is_plain, struct ends **ret, struct err *err);
/* What that op puts on its links: usage_of_op(). The solver's, until the next call. */
int solver_usage(struct solver *s, uint32_t comm, const struct sched *sched,
		 const struct membership *m, uint64_t op_number, const struct usage_images *images,
		 struct usage **ret, struct err *err);
/* Calls of real ranks, as solve_p2p() has them. */
struct p2p_calls {
	const uint32_t *ranks, *n_calls;
	const struct sched_p2p *const *calls;
	uint32_t n_ranks;
	uint64_t chunk_bytes;
	bool is_received; /* of their usage: without what they send */
};
/* The same of calls: solve_p2p_usage(). */
int solver_p2p_usage(struct solver *s, uint32_t comm, const struct p2p_calls *c,
		     const struct membership *m, uint64_t op_number,
		     const struct usage_images *images, const struct usage_copies *copies,
		     struct usage **ret, struct err *err);
