/* See pipe-lines.h. */
#include "engine/pipe-lines.h"

#include <math.h>

struct pipe_times pipe_start(double ns)
{
	return (struct pipe_times){.offset = {ns}, .last = ns, .n = 1};
}

double pipe_at(const struct pipe_times *t, uint64_t i)
{
	double latest = 0;
	int k;

	for (k = 0; k < t->n; k++)
		if (t->offset[k] != -INFINITY)
			latest = fmax(latest, t->offset[k] + (double)i * t->slope[k]);
	return latest;
}

struct pipe_times pipe_over_hop(const struct pipe_lane *lane, const struct pipe_times *t,
				uint32_t hop, double port_ns, double *ret_left_ns)
{
	const struct nbox_delay *full = &lane->full[hop], *last = &lane->last[hop];
	double start = fmax(t->last, port_ns), arrived;
	struct pipe_times a;
	int k;

	a.n = t->n > (int)hop + 2 ? t->n : (int)hop + 2;
	for (k = 0; k < a.n; k++)
		a.offset[k] = -INFINITY;

	a.offset[1 + hop] = port_ns + full->occupancy_ns + full->latency_ns;
	a.slope[1 + hop] = full->occupancy_ns;
	for (k = 0; k < t->n; k++) {
		int to = t->slope[k] > full->occupancy_ns ? k : 1 + (int)hop;

		if (t->offset[k] == -INFINITY)
			continue;
		a.offset[to] =
			fmax(a.offset[to], t->offset[k] + full->occupancy_ns + full->latency_ns);
		a.slope[to] = fmax(t->slope[k], full->occupancy_ns);
	}
	if (lane->n_messages > 1) {
		arrived = pipe_at(&a, lane->n_messages - 2);
		start = fmax(start, arrived - full->latency_ns);
		a.last = fmax(start + last->occupancy_ns + last->latency_ns, arrived);
	} else {
		a.last = start + last->occupancy_ns + last->latency_ns;
	}
	*ret_left_ns = start + last->occupancy_ns;
	return a;
}

bool pipe_merge(struct pipe_times *t, const struct pipe_times *other)
{
	int k;

	for (; t->n < other->n; t->n++)
		t->offset[t->n] = -INFINITY;
	for (k = 0; k < other->n; k++) {
		if (other->offset[k] == -INFINITY)
			continue;
		if (t->offset[k] != -INFINITY && t->slope[k] != other->slope[k])
			return false;
		t->offset[k] = fmax(t->offset[k], other->offset[k]);
		t->slope[k] = other->slope[k];
	}
	t->last = fmax(t->last, other->last);
	return true;
}
