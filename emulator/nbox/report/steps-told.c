/* See steps-told.h. */
#include "nbox/report/steps-told.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "members/members.h"
#include "nbox/report/steps.h"
#include "scenario/step-count.h"

static int by_size(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a > b) - (a < b);
}

/* Return: 1: a step begins with the op; 0; -ENOMEM. */
static int count(struct step_count *steps, const struct record_op *op, const struct config *c)
{
	char axes[64];
	const struct target_comm comm = {
		.number = op->comm,
		.is_world = op->of->n_ranks == c->world,
		.axes = members_axes_name(c->layouts, c->n_layouts, op->of->axes, axes,
					  sizeof(axes)),
	};

	return step_count_arrive(steps, 0, op->kind, op->bytes, &comm,
				 (double)op->virtual_arrive_ns);
}

/* @rows: of a rank, in order. *ret: how many of them a step has, the median; of one step alone all
 * from its first on; 0: there is no step. Return: 0; -ENOMEM. */
static int ops_per_step(const struct config *c, const struct record_op *rows, uint64_t n,
			uint64_t *ret)
{
	CLEANUP(freep) uint64_t *sizes = calloc(n + 1, sizeof(*sizes));
	struct step_count *steps = NULL;
	uint64_t n_steps = 0, first = 0;
	int r = sizes ? step_count_new(&c->steps, 1, &steps) : -ENOMEM;

	for (uint64_t i = 0; r >= 0 && i < n; i++) {
		r = count(steps, &rows[i], c);
		if (r <= 0)
			continue;
		if (step_count_last(steps) > 1)
			sizes[n_steps++] = i - first;
		first = i;
	}
	if (r >= 0 && step_count_last(steps) == 1)
		sizes[n_steps++] = n - first;
	step_count_free(steps);
	if (r < 0)
		return r;
	qsort(sizes, n_steps, sizeof(*sizes), by_size);
	*ret = sizes[n_steps / 2];
	return 0;
}

int report_steps_told(struct report *r, const struct record *rec, const struct config *c)
{
	CLEANUP(freep) struct record_op *rows = NULL;
	uint64_t n = 0, told;
	int e;

	if (!c->steps.n_ops || r->n_steps == 0)
		return 0;
	rows = calloc(rec->n_ops + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].world_rank == r->rank)
			rows[n++] = rec->ops[i];
	qsort(rows, n, sizeof(*rows), steps_order);
	e = ops_per_step(c, rows, n, &told);
	if (e == 0 && told && told != r->ops_per_step)
		report_warn(
			r,
			"a step by --steps %.96s has %llu ops, one of the job %llu: what-ifs by steps are at others than the job's%s%s",
			config_text(c, CONFIG_STEPS), (unsigned long long)told,
			(unsigned long long)r->ops_per_step,
			r->steps_rule[0] ? "; its own are --steps " : "", r->steps_rule);
	return e;
}
