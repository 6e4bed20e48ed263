/* The times of an op. */
#include <math.h>
#include <stdlib.h>

#include "engine/solve.h"

void timing_deinit(struct timing *t)
{
	free(t->first);
	free(t->step);
	free(t->at);
	free(t->offset);
	*t = (struct timing){0};
}

double timing_message_ns(const struct timing *t, uint32_t in_conn, uint64_t index)
{
	if (t->at)
		return t->at[t->offset[in_conn] + index];
	return fmin(t->first[in_conn] + (double)index * t->step[in_conn], t->end_ns);
}
