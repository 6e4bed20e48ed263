/* What a lane does next: the table of steps with their weights. */
#include <string.h>

#include "soak.h"

static const struct step {
	const char *name;
	void (*fn)(struct lane *l);
	uint32_t weight;
} steps[] = {
	{"init", step_init, 4},
	{"init-nonblocking", step_init_nonblocking, 3},
	{"init-group", step_init_group, 2},
	{"scalable", step_scalable, 1},
	{"split", step_split, 4},
	{"split-without", step_split_without, 2},
	{"shrink", step_shrink, 2},
	{"destroy", step_destroy, 6},
	{"finalize", step_finalize, 3},
	{"abort-idle", step_abort_idle, 2},
	{"abort-in-op", step_abort_in_op, 3},
	{"abort-beside-destroy", step_abort_beside_destroy, 2},
	{"abort-in-init", step_abort_in_init, 1},
	{"revoke", step_revoke, 1},
	{"collective", step_collective, 20},
	{"empty", step_empty, 2},
	{"group", step_group, 6},
	{"big-group", step_big_group, 1},
	{"streams", step_streams, 3},
	{"redop", step_redop, 2},
	{"redop-in-group", step_redop_in_group, 2},
	{"ring", step_ring, 4},
	{"all-to-all", step_all_to_all, 3},
	{"pair", step_pair, 4},
	{"graph", step_graph, 2},
	{"fork", step_fork, 1},
	{"fork-destroy", step_fork_destroy, 1},
};

#define N_STEPS (sizeof(steps) / sizeof(*steps))

static bool is_in(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		if (!strncmp(p, name, n) && (!p[n] || p[n] == ','))
			return true;
	}
	return false;
}

bool step_is_known(const char *name)
{
	for (size_t i = 0; i < N_STEPS; i++) {
		size_t n = strlen(steps[i].name);

		if (!strncmp(steps[i].name, name, n) && (!name[n] || name[n] == ','))
			return true;
	}
	return false;
}

static uint32_t weight(const struct step *s)
{
	if (is_in(job.without, s->name) || (job.only && !is_in(job.only, s->name)))
		return 0;
	return s->weight;
}

void step_run(struct lane *l)
{
	uint32_t sum = 0, at;
	size_t i;

	for (i = 0; i < N_STEPS; i++)
		sum += weight(&steps[i]);
	at = rng_below(&l->plan, sum);
	for (i = 0; at >= weight(&steps[i]); i++)
		at -= weight(&steps[i]);
	l->doing = steps[i].name;
	/* a step may draw as much as it likes: the next one begins anew */
	l->plan =
		rng_new(job.seed, (uint64_t)l->lap, (uint64_t)l->number, 1000 + (uint64_t)l->step);
	steps[i].fn(l);
	l->plan = rng_new(job.seed, (uint64_t)l->lap, (uint64_t)l->number,
			  1000000 + (uint64_t)l->step);
}
