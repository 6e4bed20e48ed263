/* When an op is over for each of its ranks, from when each rank arrives. A rank's messages start
 * when it has arrived; its part ends when its last receive is there and its sends are handed over:
 * the buffers take the last steps, and the rank's port is busy until those have left too. */
#pragma once

#include "engine/delay.h"
#include "engine/timing.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

/* Made once for equal ops; counted references. Not thread-safe. */
struct ends;

/**
 * ends_new - @t, @m and @d are borrowed for as long as @ret lives
 * @timing: solve()'s answer
 * @is_plain: without the what-ifs
 *
 * Point-to-point calls: solve-p2p.h. Return: 0; -ENOMEM.
 */
int ends_new(const struct sched *s, const struct topology *t, const struct membership *m,
	     struct delay_chain *d, uint64_t op_number, const struct timing *timing, bool is_plain,
	     struct ends **ret, struct err *err);
struct ends *ends_ref(struct ends *e);
struct ends *ends_unref(struct ends *e); /* NULL */

/**
 * ends_solve - arrays of n_ranks values
 * @arrive: virtual time of each rank's arrival; INFINITY: not known yet
 * @busy: when each rank's port has sent the messages of the communicator's op before; NULL: all
 * free
 * @extra_ns: what what-ifs add to the whole op: timing.extra_ns; 0 without them
 * @ret_end: when the op is over for each rank, never before its arrival; INFINITY: that depends on
 *           an arrival that is not known
 * @ret_busy: when each rank's port is free, for the communicator's next op; NULL: not wanted
 *
 * The last end of ranks that arrive together is solve()'s. Return: 0; -ENOMEM; -EINVAL.
 */
int ends_solve(struct ends *e, const double *arrive, const double *busy, double extra_ns,
	       double *ret_end, double *ret_busy, struct err *err);

/* How the last ends were found. SOLVE_OP: from the op's time, because the model says only that, or
 * because too many messages would have to be simulated. */
enum solve_how ends_how(const struct ends *e);
