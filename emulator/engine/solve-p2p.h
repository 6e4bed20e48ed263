/* When a group of point-to-point calls ends. */
#pragma once

#include "contention/usage.h"
#include "engine/delay.h"
#include "engine/timing.h"
#include "engine/usage-op.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

/* As solve(), for a group of point-to-point calls: arguments as border_make_p2p().
 * Virtual ranks send at the start of the op. The messages of a rank share its egress and its
 * ingress port. */
int solve_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
	      const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
	      const struct membership *m, struct delay_chain *d, const struct border *border,
	      uint64_t op_number, struct timing *ret, struct err *err);

/* World ranks that do as the real ones at the same time, at some distance. */
struct usage_copies {
	/* Those of comm rank @rank, it may be among them. Return: their number, *ret borrowed. */
	uint32_t (*of)(void *ctx, uint32_t rank, const uint32_t **ret);
	bool (*has)(void *ctx, uint32_t copy, uint32_t peer); /* virtual, and in one communicator */
	void *ctx;
};

/* What the calls put on links; arguments as there. Where all send to all it is an all-to-all's,
 * with @images; else the copies' calls count, too. NULL: there are none. @is_received: of receives
 * alone, from ranks that are none of @ranks. The caller owns a reference.
 * Return: 0; -EINVAL with the sentence; -ENOMEM. */
int solve_p2p_usage(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
		    const struct membership *m, struct delay_chain *d, uint64_t op_number,
		    const struct usage_images *images, const struct usage_copies *copies,
		    bool is_received, struct usage **ret, struct err *err);

/* What the ranks of a group bring and take; comm ranks. */
struct p2p_ranks {
	void *ctx;
	/* When the rank starts; INFINITY: not known yet. Asked for each real rank and each of their
	 * peers. */
	double (*start)(void *ctx, uint32_t rank);
	double (*busy)(void *ctx, uint32_t rank); /* when its port is free; NULL: all free */
	/* Told for each of them. A rank ends when its receives are there and its sends are handed
	 * over: one that fits the buffers at once, any other not before its receiver has started.
	 * Of a virtual rank only the calls with real ranks count. INFINITY: depends on a start that
	 * is not known. */
	void (*done)(void *ctx, uint32_t rank, double end_ns, double port_ns);
};

/* Ends of a group's ranks. @timing: solve_p2p()'s answer; @is_plain: without the what-ifs; other
 * arguments as there. */
int solve_p2p_ends(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		   const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
		   const struct membership *m, struct delay_chain *d, uint64_t op_number,
		   const struct timing *timing, bool is_plain, const struct p2p_ranks *who,
		   struct err *err);
