/* See pipe-lines.h. */
#include "engine/pipe-lines.h"

#include <math.h>

bool pipe_set_hop(struct pipe_lane *lane, uint32_t hop, const struct nbox_delay *full,
		  const struct nbox_delay *last)
{
	struct pipe_slopes *s = lane->slopes;
	int k = 1;

	while (k <= s->n && s->of[k] != full->occupancy_ns)
		k++;
	if (k == PIPE_SLOPES)
		return false;
	if (k > s->n)
		s->of[++s->n] = full->occupancy_ns;
	lane->slope[hop] = k;
	lane->full[hop] = *full;
	lane->last[hop] = *last;
	return true;
}

struct pipe_times pipe_start(double ns)
{
	return (struct pipe_times){.offset = {ns}, .last = ns, .n = 1};
}

double pipe_at(const struct pipe_slopes *s, const struct pipe_times *t, uint64_t i)
{
	double latest = 0;
	int k;

	for (k = 0; k < t->n; k++)
		if (t->offset[k] != -INFINITY)
			latest = fmax(latest, t->offset[k] + (double)i * s->of[k]);
	return latest;
}

struct pipe_times pipe_over_hop(const struct pipe_lane *lane, const struct pipe_times *t,
				uint32_t hop, double port_ns, double *ret_left_ns)
{
	const struct nbox_delay *full = &lane->full[hop], *last = &lane->last[hop];
	double start = fmax(t->last, port_ns), arrived;
	int own = lane->slope[hop], k;
	struct pipe_times a;

	a.n = t->n > own + 1 ? t->n : own + 1;
	for (k = 0; k < a.n; k++)
		a.offset[k] = -INFINITY;

	a.offset[own] = port_ns + full->occupancy_ns + full->latency_ns;
	for (k = 0; k < t->n; k++) {
		int to = lane->slopes->of[k] > full->occupancy_ns ? k : own;

		if (t->offset[k] != -INFINITY)
			a.offset[to] = fmax(a.offset[to],
					    t->offset[k] + full->occupancy_ns + full->latency_ns);
	}
	if (lane->n_messages > 1) {
		arrived = pipe_at(lane->slopes, &a, lane->n_messages - 2);
		start = fmax(start, arrived - full->latency_ns);
		a.last = fmax(start + last->occupancy_ns + last->latency_ns, arrived);
	} else {
		a.last = start + last->occupancy_ns + last->latency_ns;
	}
	*ret_left_ns = start + last->occupancy_ns;
	return a;
}

void pipe_merge(struct pipe_times *t, const struct pipe_times *other)
{
	for (; t->n < other->n; t->n++)
		t->offset[t->n] = -INFINITY;
	for (int k = 0; k < other->n; k++)
		t->offset[k] = fmax(t->offset[k], other->offset[k]);
	t->last = fmax(t->last, other->last);
}
