/* The times of an op, and which world ranks its members are. */
#include <math.h>
#include <stdlib.h>

#include "engine/solve.h"

uint32_t membership_world(const struct membership *m, uint32_t rank)
{
	return m->table ? m->table[rank] : m->base + rank * m->stride;
}

int64_t membership_rank(const struct membership *m, uint32_t world)
{
	uint32_t r;

	if (m->table) {
		for (r = 0; r < m->n_ranks; r++)
			if (m->table[r] == world)
				return r;
		return -1;
	}
	if (world < m->base)
		return -1;
	if (m->stride == 0)
		return world == m->base && m->n_ranks ? 0 : -1;
	r = (world - m->base) / m->stride;
	return r < m->n_ranks && m->base + r * m->stride == world ? (int64_t)r : -1;
}

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
