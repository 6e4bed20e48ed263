/* See ends-alltoall.h. A port sends to all others in turn, round after round, and receives what
 * comes. A rank's op is over at the latest of
 *
 *   the last message of each sender: that one's start and the op's time, less the turns of its last
 *   round that come later
 *   what it receives from all that start at a time or later: that time, and their share of the
 *   op's time
 *   what is still to come when it starts, where its buffers do not take all
 *
 * No rank ends earlier. It ends later by the messages of late senders that find its port busy: at
 * most their share of the op's time. */
#include "engine/ends-alltoall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int latest_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x > y ? -1 : x < y;
}

/* Of all that start at a time or later, for the worst of times. Sorts @start. */
static double load_end(double *start, uint32_t n, double share_ns)
{
	double end = 0;
	uint32_t k;

	qsort(start, n, sizeof(*start), latest_first);
	for (k = 1; k < n; k++)
		end = fmax(end, start[k - 1] + k * share_ns);
	/* all: none receives from itself */
	return fmax(end, start[n - 1] + (n - 1) * share_ns);
}

/* The last message to each rank: @start less a turn for each rank that has its turn later. Rank j
 * sends to j+1 first and to j-1 last. */
static void last_messages(const double *start, uint32_t n, double turn_ns, double *ret)
{
	double before = -INFINITY, after = -INFINITY;
	uint32_t i;

	for (i = n; i-- > 0;) {
		ret[i] = after + (i + 1) * turn_ns;
		after = fmax(after, start[i] - i * turn_ns);
	}
	for (i = 0; i < n; i++) {
		ret[i] = fmax(ret[i], before + ((double)i - (n - 1)) * turn_ns);
		before = fmax(before, start[i] - i * turn_ns);
	}
}

int ends_alltoall(const struct sched *s, double whole_ns, const struct sim_ranks *ranks,
		  struct err *err)
{
	uint64_t rounds = sched_conn_messages(s, 0, 1, 0), buffered = ranks->buffered;
	double share_ns = whole_ns / (s->n_ranks - 1);
	double turn_ns = share_ns / (double)(rounds ? rounds * s->n_channels : 1);
	double held = rounds > buffered ? 1 - (double)buffered / (double)rounds : 0;
	CLEANUP(freep) double *sends = malloc(s->n_ranks * sizeof(*sends));
	double load, last = 0, *end = ranks->end_ns;
	uint32_t n = s->n_ranks, r;

	if (!sends)
		return err_set(err, ENOMEM, "no memory for the ends of %u ranks", n);
	for (r = 0; r < n; r++) {
		ranks->free_ns[r] = ranks->busy_ns[r] + whole_ns;
		last = fmax(last, ranks->start_ns[r]);
	}
	last_messages(ranks->busy_ns, n, turn_ns, end);
	memcpy(sends, ranks->busy_ns, n * sizeof(*sends));
	load = load_end(sends, n, share_ns);
	for (r = 0; r < n; r++) {
		end[r] = fmax(fmax(ranks->start_ns[r], end[r] + whole_ns), load);
		if (held > 0)
			end[r] = fmax(fmax(end[r], ranks->start_ns[r] + held * whole_ns), last);
	}
	return 0;
}
