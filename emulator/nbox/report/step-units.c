/* See step-units.h. A break is what lies between two stretches. Idle is the time in which no op of
 * the communicator is under way. */
#include "nbox/report/step-units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define VALUE_BYTES                                                                               \
	64 /* of a reduction: up to this it is a value to log or a norm, no part of the gradients \
	    */

enum content { NOTHING, PIECES, EVALUATION, EITHER };

void step_units_deinit(struct step_units *f)
{
	free(f->stretches);
	f->stretches = NULL;
}

/* Ops of more than @weight in [from, to). */
static uint64_t count(const struct comm_ops *o, double weight, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += comm_op_weight(o, comm_op(o, i)) > weight;
	return n;
}

#define LARGE_MAX 100

/* The signs of a unit's large ops. Each large op has at least a hundredth of the unit's weight, so
 * there are at most a hundred, however long the unit is. */
struct large_ops {
	double weight; /* of each, at least */
	uint64_t signs[LARGE_MAX];
	uint32_t n;
};

static void find_large(const struct comm_ops *o, const struct step_units *f, struct large_ops *ret)
{
	uint64_t unit = f->stretches[0].first, end = unit + f->period;

	ret->weight = comm_ops_weight(o, unit, end) / LARGE_MAX;
	ret->n = 0;
	for (uint64_t i = unit; i < end && ret->n < LARGE_MAX; i++)
		if (comm_op_weight(o, comm_op(o, i)) >= ret->weight)
			ret->signs[ret->n++] = o->sign[i];
}

/* Does the break [from, to) hold a part of a backward pass: a large op of the unit? */
static bool holds_part(const struct comm_ops *o, const struct large_ops *large, uint64_t from,
		       uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		if (comm_op_weight(o, comm_op(o, i)) < large->weight)
			continue;
		for (uint32_t k = 0; k < large->n; k++)
			if (large->signs[k] == o->sign[i])
				return true;
	}
	return false;
}

/* Are there at least three units, with nearly all that is reduced from the first stretch to the
 * last, with no piece of a unit outside of them, and with more of the whole run's reductions than
 * are outside? Those of less than a hundredth of a unit's mean op do not count: an evaluation may
 * reduce a value after each of its many batches. */
static bool holds_backward_passes(const struct comm_ops *o, const struct step_units *f)
{
	const struct repeats_stretch *s = f->stretches;
	struct large_ops large;
	double inside = 0, all, small;
	uint64_t n_inside = 0;

	if (f->n_units < 3)
		return false;
	find_large(o, f, &large);
	small = large.weight / (double)f->period; /* a hundredth of the unit's mean op */
	for (uint64_t i = 0; i < f->n; i++) {
		inside += comm_ops_weight(o, s[i].first, repeats_end(&s[i]));
		n_inside += count(o, small, s[i].first, repeats_end(&s[i]));
		if (i + 1 < f->n && holds_part(o, &large, repeats_end(&s[i]), s[i + 1].first))
			return false;
	}
	all = comm_ops_weight(o, s[0].first, repeats_end(&s[f->n - 1]));
	return inside > 0 && inside >= 0.9 * all && 2 * n_inside > count(o, small, 0, o->n);
}

/* What the breaks reduce, beside values to log. A piece of a backward pass has a forward pass
 * behind it, which takes more than half of the break's idle time. An evaluation has its time before
 * or among its reductions. So has a backward pass that begins with a reduction of its own size:
 * where that reduction is small the break is taken for an evaluation, else nothing is concluded. */
static enum content content_of_breaks(const struct comm_ops *o, const struct step_units *f)
{
	uint64_t unit = f->stretches[0].first;
	double large = comm_ops_weight(o, unit, unit + f->period) / LARGE_MAX;
	enum content content = NOTHING;

	for (uint64_t i = 0; i + 1 < f->n; i++) {
		uint64_t from = repeats_end(&f->stretches[i]) - 1, to = f->stretches[i + 1].first;
		double half = comm_ops_idle_ns(o, from, to) / 2;

		for (uint64_t k = from + 1, next; k < to; k = next) {
			double weight = comm_op_weight(o, comm_op(o, k));

			for (next = k + 1;
			     next < to && comm_op_weight(o, comm_op(o, next)) <= VALUE_BYTES;)
				next++;
			if (weight > VALUE_BYTES && comm_ops_idle_ns(o, k, next) > half)
				return PIECES;
			if (weight > VALUE_BYTES && content != EITHER)
				content = weight < large ? EVALUATION : EITHER;
		}
	}
	return content;
}

/* The idle time of each unit but the last of each stretch, all in @within; that of the last one and
 * the break behind it in @across, but for the last stretch. Return: how many are in @within. */
static uint64_t take_idle(const struct comm_ops *o, const struct step_units *f, double *within,
			  double *across)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];
		uint64_t at = s->first;

		for (; at + 2 * f->period <= repeats_end(s); at += f->period)
			within[n++] = comm_ops_idle_ns(o, at, at + f->period);
		if (i + 1 < f->n)
			across[i] = comm_ops_idle_ns(o, at, s[1].first);
	}
	return n;
}

/* Is the second half of a stretch idle for much longer than the first? It is where a forward pass
 * with reductions (tensor parallelism) is followed by a backward pass with the same ones. */
static bool has_uneven_halves(const struct comm_ops *o, const struct step_units *f, double *buf)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];
		uint64_t half = (s->n / f->period - 1) / 2 * f->period;

		if (half >= 2 * f->period)
			buf[n++] = (comm_ops_idle_ns(o, s->first + half, s->first + 2 * half) + 1) /
				   (comm_ops_idle_ns(o, s->first, s->first + half) + 1);
	}
	return n >= 3 && repeats_median(buf, n) > 1.5;
}

/* Where a group of @k units in a row is followed by a break, @gap longer than the time between two
 * units: are the units steps, or the group one? Pieces of one backward pass have the forward pass
 * between the groups, which takes a third of the backward pass's time, at least. Far more than it
 * takes is idle when all pieces are reduced at once. */
static enum step_verdict judge_group(double k, double within, double gap, enum content breaks)
{
	static const enum step_verdict verdicts[] = {
		[PIECES] = PARTS_OF_STEPS, [EVALUATION] = STEPS, [EITHER] = UNCLEAR};
	double share = gap / (k * (within > 1 ? within : 1));

	if (share < 0.25)
		return STEPS;
	return breaks != NOTHING ? verdicts[breaks] : share > 2 ? PARTS_OF_STEPS : STEPS;
}

/* Is each k-th of @values much larger than the others? Where ops follow each other at once the
 * others are no idle time but noise, so that no limit is the right one for all jobs. Return: k; 0:
 * no. @sorted: the same, sorted. */
static uint64_t regular_gaps(const double *values, const double *sorted, uint64_t n,
			     double *ret_base, double *ret_gap)
{
	double base = sorted[n / 4], gap;
	uint64_t k = 0;

	for (double noise = 1000; k == 0 && noise < sorted[n - 1]; noise *= 4)
		k = repeats_above(values, n, 1.5 * base + noise, &gap);
	if (k == 0)
		return 0;
	*ret_base = base;
	*ret_gap = gap - base;
	return k;
}

/* Does each k-th unit begin with computation that waited for the unit before, and no other? The
 * others are then parts of one backward pass. Return: k; 0: no, or it is not known. @buf: has room
 * for a number a unit. */
static uint64_t units_a_wait(const struct comm_ops *o, const struct step_units *f, double *buf)
{
	uint64_t first = f->stretches[0].first, n = 0;
	double gap;

	for (uint64_t at = first + f->period; at < repeats_end(&f->stretches[0]); at += f->period)
		buf[n++] = o->waits[at] >= at;
	return repeats_above(buf, n, 0.5, &gap);
}

/* *ret_times: so many units are one step; more than 1 with PARTS_OF_STEPS, where it is known.
 * Return: 0; -ENOMEM. */
static int judge_times(const struct comm_ops *o, const struct step_units *f, enum step_verdict *ret,
		       uint64_t *ret_times)
{
	CLEANUP(freep) double *within = calloc(f->n_units + 1, sizeof(*within));
	CLEANUP(freep) double *sorted = calloc(f->n_units + 1, sizeof(*sorted));
	CLEANUP(freep) double *across = calloc(f->n, sizeof(*across));
	double base, gap;
	uint64_t n, k;

	if (!within || !sorted || !across)
		return -ENOMEM;
	n = take_idle(o, f, within, across);
	memcpy(sorted, within, n * sizeof(*within));
	*ret = STEPS;
	*ret_times = 1;
	if (f->n > 1) {
		double usual = repeats_median(sorted, n),
		       of_breaks = repeats_median(across, f->n - 1);

		*ret = has_uneven_halves(o, f, across)
			       ? PARTS_OF_STEPS
			       : judge_group((double)f->n_units / (double)f->n, usual,
					     of_breaks - usual, content_of_breaks(o, f));
	} else if ((k = units_a_wait(o, f, sorted)) > 0 || (k = repeats_wave(within, n)) > 0) {
		*ret = PARTS_OF_STEPS;
		*ret_times = k;
	} else if (n >= 3) {
		memcpy(sorted, within, n * sizeof(*within));
		repeats_median(sorted, n);
		k = regular_gaps(within, sorted, n, &base, &gap);
		if (k)
			*ret = judge_group((double)k, base, gap, NOTHING);
		if (*ret == PARTS_OF_STEPS)
			*ret_times = k;
	}
	return 0;
}

static int find_units(const struct comm_ops *o, uint64_t period, struct step_units *ret)
{
	int64_t n = repeats_stretches(o->sign, o->n, period, o->weights, &ret->stretches);

	if (n < 0)
		return (int)n;
	ret->period = period;
	ret->n = (uint64_t)n;
	ret->n_units = 0;
	for (uint64_t i = 0; i < ret->n; i++)
		ret->n_units += ret->stretches[i].n / period;
	return 0;
}

int step_units_judge(const struct comm_ops *o, uint64_t period, struct step_units *ret,
		     enum step_verdict *ret_verdict)
{
	uint64_t times = 1;
	int r = find_units(o, period, ret);

	*ret_verdict = NO_STEPS;
	if (r < 0 || !holds_backward_passes(o, ret))
		return r;
	r = judge_times(o, ret, ret_verdict, &times);
	if (r < 0 || times == 1)
		return r;
	step_units_deinit(ret);
	r = find_units(o, period * times, ret);
	*ret_verdict = r == 0 && holds_backward_passes(o, ret) ? STEPS : PARTS_OF_STEPS;
	return r;
}
