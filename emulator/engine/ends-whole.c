/* See ends-whole.h. */
#include "engine/ends-whole.h"

#include <math.h>

#include "base/cleanup.h"
#include "engine/sim-ranks.h"

enum waits { FOR_ALL, FOR_ROOT, FOR_NOBODY };

static enum waits waits_of(const struct sched *s, uint32_t rank)
{
	switch ((uint32_t)s->kind) {
	case COLL_BROADCAST:
	case COLL_SCATTER:
		return rank == s->root ? FOR_NOBODY : FOR_ROOT;
	case COLL_REDUCE:
	case COLL_GATHER:
		return rank == s->root ? FOR_ALL : FOR_NOBODY;
	default:
		return FOR_ALL;
	}
}

static double start_of(const double *arrive, const double *busy, uint32_t rank)
{
	return busy ? fmax(arrive[rank], busy[rank]) : arrive[rank];
}

/* The part of the op's time after which the buffers hold what is left to send. */
static double sending_share(const struct sched *s)
{
	double buffers = (double)s->n_channels * (double)SIM_BUFFER_BYTES;

	return s->n_ranks < 2 ? 1 : fmax(0, 1 - buffers / fmax((double)s->bytes, 1));
}

void ends_whole(const struct sched *s, double whole_ns, const double *arrive, const double *busy,
		double *ret_end, double *ret_busy)
{
	double all = -INFINITY, share = sending_share(s);
	uint32_t r;

	for (r = 0; r < s->n_ranks; r++)
		all = fmax(all, start_of(arrive, busy, r));
	for (r = 0; r < s->n_ranks; r++) {
		enum waits waits = waits_of(s, r);
		double from = start_of(arrive, busy, r), time = whole_ns;

		if (waits == FOR_ALL)
			from = all;
		else if (waits == FOR_ROOT)
			from = fmax(from, start_of(arrive, busy, s->root));
		else
			time = whole_ns * share;
		/* a rank that leaves all to its port does not wait for it */
		ret_end[r] = time > 0 || waits != FOR_NOBODY ? from + time : arrive[r];
		if (ret_busy)
			ret_busy[r] = from + whole_ns;
	}
}
