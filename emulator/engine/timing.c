/* See timing.h. */
#include "engine/timing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const char *solve_how_name(uint32_t how)
{
	static const char *const names[] = {"model", "symmetry", "simulated"};

	return how <= SOLVE_SIM ? names[how] : "?";
}

void timing_deinit(struct timing *t)
{
	free(t->at);
	free(t->offset);
	*t = (struct timing){0};
}

double timing_message_ns(const struct timing *t, uint32_t in_conn, uint64_t index)
{
	return t->at[t->offset[in_conn] + index];
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
	int r = timing_alloc(t, b, err);

	for (uint32_t c = 0; r == 0 && c < b->n_in; c++)
		for (uint64_t i = 0, n = b->in[c].n_messages; i < n; i++)
			t->at[t->offset[c] + i] =
				fmin((double)(i + 1) * (t->end_ns / (double)n), t->end_ns);
	return r;
}
