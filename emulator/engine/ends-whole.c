/* See ends-whole.h. */
#include "engine/ends-whole.h"

#include <math.h>

#include "engine/sim-ranks.h"

enum waits { FOR_ALL, FOR_OTHERS, FOR_ROOT, FOR_NOBODY };

static enum waits waits_of(const struct sched *s, uint32_t rank)
{
	switch ((uint32_t)s->kind) {
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
	case COLL_ALLTOALL:
		return FOR_OTHERS;
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
	double buffers = (double)s->n_channels * (double)SIM_BUFFER_BYTES, bytes = (double)s->bytes;

	if (s->n_ranks < 2)
		return 1;
	if (s->kind == COLL_ALLGATHER || s->kind == COLL_REDUCESCATTER ||
	    s->kind == COLL_ALLTOALL || s->kind == COLL_SCATTER)
		bytes *= s->n_ranks - 1;
	return fmax(0, 1 - buffers / fmax(bytes, 1));
}

void ends_whole(const struct sched *s, double whole_ns, const double *arrive, const double *busy,
		double *ret_end, double *ret_busy)
{
	double last = -INFINITY, second = -INFINITY, share = sending_share(s);
	uint32_t last_rank = 0, r;

	for (r = 0; r < s->n_ranks; r++) {
		double start = start_of(arrive, busy, r);

		second = fmax(second, fmin(start, last));
		last_rank = start > last ? r : last_rank;
		last = fmax(start, last);
	}
	for (r = 0; r < s->n_ranks; r++) {
		enum waits waits = waits_of(s, r);
		double from = start_of(arrive, busy, r), end = from + whole_ns;

		if (waits == FOR_ALL)
			end = last + whole_ns;
		else if (waits == FOR_ROOT)
			end = fmax(from, start_of(arrive, busy, s->root)) + whole_ns;
		else if (share > 0)
			end = from + whole_ns * share;
		else /* all is left to the port */
			end = arrive[r];
		if (waits == FOR_OTHERS)
			end = fmax(end, (r == last_rank ? second : last) + whole_ns);
		ret_end[r] = end;
		if (ret_busy)
			ret_busy[r] = from + whole_ns;
	}
}
