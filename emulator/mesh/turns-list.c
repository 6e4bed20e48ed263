/* See turns-list.h. */
#include "mesh/turns-list.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "mesh/turns-play.h"

struct place {
	double ns;
	uint32_t task;
};

static int longest_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/* The task goes to the sender that has least to send so far, the lowest of several. */
static uint32_t least_loaded(const struct turns_task *task, double *load)
{
	uint64_t hosts = task->senders;
	uint32_t best = turns_take_host(&hosts);

	while (hosts) {
		uint32_t h = turns_take_host(&hosts);

		best = load[h] < load[best] ? h : best;
	}
	load[best] += task->ns;
	return best;
}

int turns_list(const struct turns_task *tasks, enum turns_algo algo, struct turns *t)
{
	CLEANUP(freep) struct place *order = malloc((t->n ? t->n : 1) * sizeof(*order));
	double load[64] = {0};

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		order[i] = (struct place){tasks[i].ns, i};
	if (algo == TURNS_LB)
		qsort(order, t->n, sizeof(*order), longest_first);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct turns_task *task = &tasks[order[i].task];
		uint32_t sender = algo == TURNS_NAIVE ? (uint32_t)__builtin_ctzll(task->senders)
						      : least_loaded(task, load);

		t->turns[i] = (struct turn){.task = order[i].task, .sender = sender};
	}
	turns_play(tasks, t);
	t->by = algo;
	return 0;
}
