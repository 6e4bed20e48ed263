/* Time belongs to ranks: the timelines of all ranks of a world. Each has a virtual time at every
 * point of its way: an op's arrival and end, a place in a stream, the return of a call that made
 * the host wait. A real rank's points are observed; a virtual rank passes its template's points, at
 * times of its own.
 *
 * Of a point that the real rank reached at t, and that it waits for the points and ops *deps*:
 *
 *     d    = t - max(t of deps, work)   t of an op that is over: when its gate really opened
 *     T(v) = max(S(v) + f(v, d), T(v) of host + (call - t of host))
 *     S(v) = max(max T(v) of deps, T(v) of host + (work - t of host))
 *
 * T(v) of an op as a dep is its end at v. f is what computation of d takes at v (slow, jitter).
 * *host* is the last return to the host before the call that enqueued the point, and *work* when
 * the host gave the stream its first work after deps. Where the host was the bound, t comes just
 * after the call: then d is the host's, which f does not stretch:
 *
 *     T(v) = max(max T(v) of deps, T(v) of host + (t - t of host))
 *
 * A host that has waited for all that a stream had done found it idle: then *host* is one of the
 * deps of what the stream does next.
 *
 * So a gate that opens late, or an op whose own work outlasts it, does not reach T: d counts from
 * the opening, T goes on from the virtual end. What the wall clock lost is the slip, t - T.
 *
 * Where the cluster's GPUs are faster than those that the job runs on (topology's gpu_speed), d is
 * as much shorter, what-ifs or not. What is the host's stays.
 *
 * A second time of each point, the plain one, knows of no what-ifs.
 *
 * Ranks with one template have one time as long as nothing tells them apart, else one each. No I/O,
 * no clock; times are double nanoseconds since an epoch that the first point sets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "topology/topology.h"

struct timelines;     /* of a world */
struct timeline_node; /* a point or an op of a real rank, and of those that it is the template of */

/* How long computation takes that took the template @ns, and begins at @start. Return: 0; 1: as
 * long; negative errno with the sentence. */
struct timeline_what_if {
	int (*segment)(void *ctx, uint32_t world_rank, uint64_t number, double start, double ns,
		       double *ret_ns, struct err *err);
	void *ctx;
};

/* A name, and whether that lies before the point on the point's own stream. */
struct timeline_dep {
	uint64_t name;
	bool is_same_stream;
	uint64_t open_ns; /* wall: when the gate of that, an op, had opened; 0: see
			     timeline_opened() */
};

struct timeline_point {
	uint64_t name;             /* not 0 */
	uint64_t time_ns, call_ns; /* wall; call_ns 0: not known */
	uint64_t work_ns;          /* wall; 0: not known */
	uint64_t host;             /* a name; 0: none */
	const struct timeline_dep *deps;
	size_t n_deps;
	const struct timeline_dep *latest; /* what came last at the rank: a dep where none of @deps
					      is known; NULL: that of the timeline */
	uint64_t number;                   /* of all points of the rank, from 1; 0: as they come */
	bool is_host;                      /* a return to the host */
	uint32_t queue; /* an op's: those of one queue of a rank, a communicator, are played one
			   after the other; 0: none */
};

/* How the time of a point at the real rank came about: what the formula above is made of. */
struct timeline_terms {
	double segment_ns, slowed_ns; /* f(v, d); of that what what-ifs have added to d */
	double rest_ns;               /* the host's, where no point of its own is known */
	double work_ns, gap_ns;       /* after host: until the work, or -INFINITY; the call */
	bool is_after_host;           /* host is one of the deps, too */
	bool is_after_latest;         /* in place of deps, of which none is known */
};

/* What became of a point at the real rank, in virtual time on the wall clock's scale. */
struct timeline_times {
	uint64_t time_ns, plain_ns;
	uint64_t exposed_ns; /* the rank's computation waited for communication so long */
	struct timeline_terms terms;
	bool is_host_bound;
};

/**
 * timelines_new - @real: the real world ranks, sorted, at least one; templates by
 * topology/template.h, with @classes, which are borrowed for the call
 * @what_if: NULL: all compute like their templates
 *
 * Return: 0; -ENOMEM.
 */
int timelines_new(const struct topology *t, const uint32_t *real, size_t n_real,
		  const uint32_t *classes, const struct timeline_what_if *what_if,
		  struct timelines **ret);
struct timelines *timelines_free(struct timelines *t); /* NULL allowed; returns NULL */
/* The wall time from which virtual times are counted: of the first point; 0: there is none yet. */
uint64_t timelines_epoch_ns(const struct timelines *t);
/* The real rank that @world_rank copies. O(1). */
uint32_t timelines_template(const struct timelines *t, uint32_t world_rank);

/* The last point or op that a real rank has come to; borrowed, until the next. NULL: none yet. */
const struct timeline_node *timelines_latest(const struct timelines *t, uint32_t real_rank);

/* No rank was told apart from its template where that was last seen. */
bool timelines_are_folded(const struct timelines *t);

/* A real rank has reached a point. Of deps that are not known any more the latest point of the rank
 * takes the place. Return: 0; -ENOMEM, or a what-if's error, with the sentence. */
int timelines_point(struct timelines *t, uint32_t real_rank, const struct timeline_point *p,
		    struct timeline_times *ret, struct err *err);
/* The same for the arrival at an op. The node is the caller's until timeline_node_release(). */
int timelines_arrive(struct timelines *t, uint32_t real_rank, const struct timeline_point *p,
		     struct timeline_node **ret, struct timeline_times *ret_times, struct err *err);
void timeline_node_release(struct timeline_node *n); /* NULL allowed */

/* --- an op's node --------------------------------------------------------------------------- */

/* When @world_rank arrives: the real rank itself, or one whose template it is. Any other rank comes
 * as much after the plain arrival as it was behind the plain time where its own template was last
 * seen; with it, where that was not seen yet. */
double timeline_arrival(const struct timeline_node *n, uint32_t world_rank);
double timeline_plain_arrival(const struct timeline_node *n);
/* The same, or when the op before it in its queue is over there, if that is known and later. */
double timeline_start(const struct timeline_node *n, uint32_t world_rank);
double timeline_plain_start(const struct timeline_node *n);
/* How long after the end of the op before it in its queue it arrives there, negative: before that;
 * INFINITY: not known. */
double timeline_behind(const struct timeline_node *n, uint32_t world_rank);
/* How long the real rank had computed when it arrived, in virtual time: since the last place at
 * which it waited for an op, or would have; since its first point, where there is none. */
double timeline_window(const struct timeline_node *n);
/* The op before it in its queue is not known to be over yet. */
bool timeline_is_queued(const struct timeline_node *n);
/* Nothing tells its ranks apart: all start with the real one. */
bool timeline_is_folded(const struct timeline_node *n);
/* The ranks with its real rank as template, itself among them; @ret_n of them, sorted. */
const uint32_t *timeline_ranks(const struct timeline_node *n, uint32_t *ret_n);
/* How much later than its real rank each of timeline_ranks() comes to @n, or with @is_over is over
 * with it. Return: false: none does; @ret stays as it was. */
bool timeline_lags(const struct timeline_node *n, bool is_over, double *ret);
/* When the op is over: at all ranks of the node alike, or at each, in the order of
 * timeline_ranks(). Of several ends the latest counts. Return: 0; -ENOMEM. */
int timeline_end_all(struct timeline_node *n, double end, double plain_end);
int timeline_end_each(struct timeline_node *n, const double *ends, double plain_end);
/* One more owner. Return: @n. */
struct timeline_node *timeline_node_hold(struct timeline_node *n);
/* Ends become what @moved makes of them: those with what-ifs, or the plain one. Points that have
 * waited for the end move with it, up to ops that are over. Return: by how many ns the end at the
 * real rank is later, < 0: earlier; 0 where its gate has not opened. */
double timeline_move_end(struct timeline_node *n, bool is_plain,
			 double (*moved)(void *ctx, double end), void *ctx);
double timeline_real_end(const struct timeline_node *n, bool is_plain);
/* The end at the real rank: in virtual time, and when its gate is due by the wall clock, rounded
 * up. */
struct timeline_times timeline_end(const struct timeline_node *n);
uint64_t timeline_due_ns(const struct timeline_node *n);
/* The gate of the real rank has opened. Until then it counts as opened when it is due. */
void timeline_opened(struct timeline_node *n, uint64_t wall_ns);
