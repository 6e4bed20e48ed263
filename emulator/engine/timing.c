/* See timing.h. */
#include "engine/timing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

int timing_alloc(struct timing *t, const struct border *b, struct err *err)
{
	uint32_t i;

	t->n_in = b->n_in;
	t->at = malloc((b->n_in_messages + 1) * sizeof(*t->at));
	t->offset = malloc(((size_t)b->n_in + 1) * sizeof(*t->offset));
	if (!t->at || !t->offset)
		return err_set(err, ENOMEM, "no memory for the times of %llu messages",
			       (unsigned long long)b->n_in_messages);
	t->offset[0] = 0;
	for (i = 0; i < b->n_in; i++)
		t->offset[i + 1] = t->offset[i] + b->in[i].n_messages;
	return 0;
}

int timing_spread(struct timing *t, const struct border *b, struct err *err)
{
	uint32_t i;

	t->n_in = b->n_in;
	t->first = malloc(((size_t)b->n_in + 1) * sizeof(*t->first));
	t->step = malloc(((size_t)b->n_in + 1) * sizeof(*t->step));
	if (!t->first || !t->step)
		return err_set(err, ENOMEM, "no memory for the times of %u connections", b->n_in);
	for (i = 0; i < b->n_in; i++)
		t->first[i] = t->step[i] = t->end_ns / (double)b->in[i].n_messages;
	return 0;
}
