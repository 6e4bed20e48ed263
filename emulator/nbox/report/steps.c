/* See steps.h. Words of this file: a unit is what repeats, a stretch a part where it does so
 * without a break, a break what lies between two stretches. Idle is the time in which no op of the
 * communicator is under way. */
#include "nbox/report/steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/units.h"
#include "nbox/report/repeats.h"
#include "nbox/report/waits.h"
#include "schedule/coll.h"

#define VALUE_BYTES                                                                               \
	64 /* of a reduction: up to this it is a value to log or a norm, no part of the gradients \
	    */

#define LEAST_PART \
	100 /* of the mean op of the communicator that carries most: smaller ones are metrics */

/* The ops of the communicator that is looked at. Sums have one number more than there are ops: of
 * all before. */
struct ops {
	const struct record_op *rows; /* of the rank */
	uint64_t n_rows, n;
	uint64_t *at;    /* places in rows */
	uint64_t *sign;  /* equal for equal calls */
	double *weights; /* sums: bytes that show a backward pass */
	double *busy_ns; /* sums: time in which the op, and no later one, was under way */
	uint64_t *waits; /* see waits.h */
	bool is_sending; /* sends show it, not reductions */
};

/* A length of units and its stretches. */
struct found {
	uint64_t period, n_units;
	struct repeats_stretch *stretches; /* owned */
	uint64_t n;
};

enum verdict { STEPS, PARTS_OF_STEPS, NO_STEPS, UNCLEAR };
enum content { NOTHING, PIECES, EVALUATION, EITHER };

static void ops_deinit(struct ops *o)
{
	free(o->at);
	free(o->sign);
	free(o->weights);
	free(o->busy_ns);
	free(o->waits);
}

static void found_deinit(struct found *f)
{
	free(f->stretches);
	f->stretches = NULL;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* Sorts @values. */
static double median(double *values, uint64_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n ? values[n / 2] : 0;
}

/* --- the communicator ------------------------------------------------------------------------ */

static double reduced_bytes(const struct record_op *r)
{
	if (r->kind == COLL_REDUCESCATTER)
		return (double)r->bytes *
		       r->of->n_ranks; /* the record has those of one rank's part */
	return r->kind == COLL_ALLREDUCE || r->kind == COLL_REDUCE ? (double)r->bytes : 0;
}

static double sent_bytes(const struct record_op *r)
{
	return r->kind == COLL_SENDRECV ? (double)r->bytes : 0;
}

static double weight_of(const struct ops *o, const struct record_op *r)
{
	return o->is_sending ? sent_bytes(r) : reduced_bytes(r);
}

static int by_comm(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	if ((*a)->comm != (*b)->comm)
		return (*a)->comm < (*b)->comm ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

/* What shows a backward pass in ops [first, first + n) of the rows that are sorted by communicator.
 */
struct group {
	uint64_t first, n;
	double reduced, sent;
};

/* Return: the communicator that begins at @first. */
static struct group group_at(const struct record_op *const *rows, uint64_t first, uint64_t n_rows)
{
	struct group g = {.first = first};

	for (uint64_t i = first; i < n_rows && rows[i]->comm == rows[first]->comm; i++) {
		g.n++;
		g.reduced += reduced_bytes(rows[i]);
		g.sent += sent_bytes(rows[i]);
	}
	return g;
}

static uint64_t signature_of(const struct record_op *r)
{
	return rng_hash(rng_hash(r->kind, r->bytes), r->dtype);
}

static int ops_init(struct ops *o, const struct record *rec, const struct record_op *rows,
		    uint64_t n_rows, const struct record_op *const *of_group, uint64_t n,
		    bool is_sending)
{
	*o = (struct ops){.rows = rows, .n_rows = n_rows, .n = n, .is_sending = is_sending};
	o->at = calloc(o->n + 1, sizeof(*o->at));
	o->sign = calloc(o->n + 1, sizeof(*o->sign));
	o->weights = calloc(o->n + 1, sizeof(*o->weights));
	o->busy_ns = calloc(o->n + 1, sizeof(*o->busy_ns));
	o->waits = calloc(o->n + 1, sizeof(*o->waits));
	if (!o->at || !o->sign || !o->weights || !o->busy_ns || !o->waits)
		return -ENOMEM;
	for (uint64_t i = 0; i < o->n; i++) {
		const struct record_op *r = of_group[i];
		uint64_t end = r->virtual_end_ns;

		if (i + 1 < o->n && of_group[i + 1]->virtual_arrive_ns < end)
			end = of_group[i + 1]->virtual_arrive_ns;
		o->at[i] = (uint64_t)(r - rows);
		o->sign[i] = signature_of(r);
		o->weights[i + 1] = o->weights[i] + weight_of(o, r);
		o->busy_ns[i + 1] =
			o->busy_ns[i] +
			(end > r->virtual_arrive_ns ? (double)(end - r->virtual_arrive_ns) : 0);
	}
	return waits_find(rec, rows, n_rows, o->at, o->n, o->waits);
}

static const struct record_op *op(const struct ops *o, uint64_t i)
{
	return &o->rows[o->at[i]];
}

/* From the arrival of op @from to that of the later op @to, less the ops between. */
static double idle_ns(const struct ops *o, uint64_t from, uint64_t to)
{
	return (double)(op(o, to)->virtual_arrive_ns - op(o, from)->virtual_arrive_ns) -
	       (o->busy_ns[to] - o->busy_ns[from]);
}

static double weight_between(const struct ops *o, uint64_t from, uint64_t to)
{
	return o->weights[to] - o->weights[from];
}

/* --- is a unit a step? ----------------------------------------------------------------------- */

static uint64_t end_of(const struct repeats_stretch *s)
{
	return s->first + s->n;
}

/* Ops of more than @weight in [from, to). */
static uint64_t count(const struct ops *o, double weight, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += weight_of(o, op(o, i)) > weight;
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

static void find_large(const struct ops *o, const struct found *f, struct large_ops *ret)
{
	uint64_t unit = f->stretches[0].first, end = unit + f->period;

	ret->weight = weight_between(o, unit, end) / LARGE_MAX;
	ret->n = 0;
	for (uint64_t i = unit; i < end && ret->n < LARGE_MAX; i++)
		if (weight_of(o, op(o, i)) >= ret->weight)
			ret->signs[ret->n++] = o->sign[i];
}

/* Does the break [from, to) hold a part of a backward pass: a large op of the unit? */
static bool holds_part(const struct ops *o, const struct large_ops *large, uint64_t from,
		       uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		if (weight_of(o, op(o, i)) < large->weight)
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
static bool holds_backward_passes(const struct ops *o, const struct found *f)
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
		inside += weight_between(o, s[i].first, end_of(&s[i]));
		n_inside += count(o, small, s[i].first, end_of(&s[i]));
		if (i + 1 < f->n && holds_part(o, &large, end_of(&s[i]), s[i + 1].first))
			return false;
	}
	all = weight_between(o, s[0].first, end_of(&s[f->n - 1]));
	return inside > 0 && inside >= 0.9 * all && 2 * n_inside > count(o, small, 0, o->n);
}

/* What the breaks reduce, beside values to log. A piece of a backward pass has a forward pass
 * behind it, which takes more than half of the break's idle time. An evaluation has its time before
 * or among its reductions. So has a backward pass that begins with a reduction of its own size:
 * where that reduction is small the break is taken for an evaluation, else nothing is concluded. */
static enum content content_of_breaks(const struct ops *o, const struct found *f)
{
	uint64_t unit = f->stretches[0].first;
	double large = weight_between(o, unit, unit + f->period) / LARGE_MAX;
	enum content content = NOTHING;

	for (uint64_t i = 0; i + 1 < f->n; i++) {
		uint64_t from = end_of(&f->stretches[i]) - 1, to = f->stretches[i + 1].first;
		double half = idle_ns(o, from, to) / 2;

		for (uint64_t k = from + 1, next; k < to; k = next) {
			double weight = weight_of(o, op(o, k));

			for (next = k + 1; next < to && weight_of(o, op(o, next)) <= VALUE_BYTES;)
				next++;
			if (weight > VALUE_BYTES && idle_ns(o, k, next) > half)
				return PIECES;
			if (weight > VALUE_BYTES && content != EITHER)
				content = weight < large ? EVALUATION : EITHER;
		}
	}
	return content;
}

/* The idle time of each unit but the last of each stretch, all in @within; that of the last one and
 * the break behind it in @across, but for the last stretch. Return: how many are in @within. */
static uint64_t take_idle(const struct ops *o, const struct found *f, double *within,
			  double *across)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];
		uint64_t at = s->first;

		for (; at + 2 * f->period <= end_of(s); at += f->period)
			within[n++] = idle_ns(o, at, at + f->period);
		if (i + 1 < f->n)
			across[i] = idle_ns(o, at, s[1].first);
	}
	return n;
}

/* Is the second half of a stretch idle for much longer than the first? It is where a forward pass
 * with reductions (tensor parallelism) is followed by a backward pass with the same ones. */
static bool has_uneven_halves(const struct ops *o, const struct found *f, double *buf)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];
		uint64_t half = (s->n / f->period - 1) / 2 * f->period;

		if (half >= 2 * f->period)
			buf[n++] = (idle_ns(o, s->first + half, s->first + 2 * half) + 1) /
				   (idle_ns(o, s->first, s->first + half) + 1);
	}
	return n >= 3 && median(buf, n) > 1.5;
}

/* Where a group of @k units in a row is followed by a break, @gap longer than the time between two
 * units: are the units steps, or the group one? Pieces of one backward pass have the forward pass
 * between the groups, which takes a third of the backward pass's time, at least. Far more than it
 * takes is idle when all pieces are reduced at once. */
static enum verdict judge_group(double k, double within, double gap, enum content breaks)
{
	static const enum verdict verdicts[] = {
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
static uint64_t units_a_wait(const struct ops *o, const struct found *f, double *buf)
{
	uint64_t first = f->stretches[0].first, n = 0;
	double gap;

	for (uint64_t at = first + f->period; at < end_of(&f->stretches[0]); at += f->period)
		buf[n++] = o->waits[at] >= at;
	return repeats_above(buf, n, 0.5, &gap);
}

/* *ret_times: so many units are one step; more than 1 with PARTS_OF_STEPS, where it is known.
 * Return: 0; -ENOMEM. */
static int judge_times(const struct ops *o, const struct found *f, enum verdict *ret,
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
		double usual = median(sorted, n), of_breaks = median(across, f->n - 1);

		*ret = has_uneven_halves(o, f, across)
			       ? PARTS_OF_STEPS
			       : judge_group((double)f->n_units / (double)f->n, usual,
					     of_breaks - usual, content_of_breaks(o, f));
	} else if ((k = units_a_wait(o, f, sorted)) > 0 || (k = repeats_wave(within, n)) > 0) {
		*ret = PARTS_OF_STEPS;
		*ret_times = k;
	} else if (n >= 3) {
		memcpy(sorted, within, n * sizeof(*within));
		qsort(sorted, n, sizeof(*sorted), by_value);
		k = regular_gaps(within, sorted, n, &base, &gap);
		if (k)
			*ret = judge_group((double)k, base, gap, NOTHING);
		if (*ret == PARTS_OF_STEPS)
			*ret_times = k;
	}
	return 0;
}

static int find_units(const struct ops *o, uint64_t period, struct found *ret)
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

/* Return: 0; -ENOMEM. @ret: the caller's to deinit whatever *ret_verdict is. */
static int judge(const struct ops *o, uint64_t period, struct found *ret, enum verdict *ret_verdict)
{
	uint64_t times = 1;
	int r = find_units(o, period, ret);

	*ret_verdict = NO_STEPS;
	if (r < 0 || !holds_backward_passes(o, ret))
		return r;
	r = judge_times(o, ret, ret_verdict, &times);
	if (r < 0 || times == 1)
		return r;
	found_deinit(ret);
	r = find_units(o, period * times, ret);
	*ret_verdict = r == 0 && holds_backward_passes(o, ret) ? STEPS : PARTS_OF_STEPS;
	return r;
}

/* --- the steps ------------------------------------------------------------------------------- */

static int take_steps(const struct ops *o, const struct found *f, struct steps *ret)
{
	uint64_t unit = f->stretches[0].first;
	char bytes[32];

	ret->list = calloc(f->n_units, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];

		for (uint64_t at = s->first, next; (next = at + f->period) <= end_of(s);
		     at = next) {
			struct step *step = &ret->list[ret->n++];

			step->first = o->at[at];
			step->is_timed = next < end_of(s);
			step->end = step->is_timed ? o->at[next] : o->at[next - 1] + 1;
		}
	}
	units_print_bytes((uint64_t)fmin(weight_between(o, unit, unit + f->period), 1e18), bytes,
			  sizeof(bytes));
	snprintf(ret->how, sizeof(ret->how),
		 "%llu op%s of a communicator of %u ranks, %llu times, with %s %s each time",
		 (unsigned long long)f->period, f->period == 1 ? "" : "s in a row",
		 op(o, unit)->of->n_ranks, (unsigned long long)ret->n, bytes,
		 o->is_sending ? "sent and received" : "to reduce");
	if (f->n == 1)
		snprintf(ret->rule, sizeof(ret->rule), "ops=%llu,communicator=%u,skip=%llu",
			 (unsigned long long)f->period, op(o, unit)->comm,
			 (unsigned long long)unit);
	return 0;
}

static int try_periods(const struct ops *o, struct steps *ret)
{
	uint64_t periods[REPEATS_PERIODS_MAX];
	bool has_parts = false;
	int n = repeats_periods(o->sign, o->n, periods), r = n;

	for (int i = 0; r >= 0 && i < n; i++) {
		CLEANUP(found_deinit) struct found f = {0};
		enum verdict verdict;

		r = judge(o, periods[i], &f, &verdict);
		if (r == 0 && verdict == STEPS)
			return take_steps(o, &f, ret);
		if (r == 0 && verdict == UNCLEAR) {
			snprintf(ret->how, sizeof(ret->how),
				 "groups of like reductions have others between them, an "
				 "evaluation's or the same backward pass's");
			return 0;
		}
		has_parts |= verdict == PARTS_OF_STEPS;
	}
	snprintf(ret->how, sizeof(ret->how), "%s",
		 has_parts ? "what repeats in the job's reductions comes in groups, as parts of a "
			     "step do, and no three groups are alike"
			   : "no sequence of ops repeats three times and holds most of the job's "
			     "reductions");
	return r < 0 ? r : 0;
}

int steps_order(const void *pa, const void *pb)
{
	const struct record_op *a = pa, *b = pb;

	if (a->world_rank != b->world_rank)
		return a->world_rank < b->world_rank ? -1 : 1;
	if (a->virtual_arrive_ns != b->virtual_arrive_ns)
		return a->virtual_arrive_ns < b->virtual_arrive_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static double span_ns(const struct record_op *rows, const struct steps *s)
{
	const struct step *last = &s->list[s->n - 1];

	return (double)(rows[last->end - 1].virtual_arrive_ns -
			rows[s->list[0].first].virtual_arrive_ns);
}

/* Is what repeats in @s, on another communicator, what @of are parts of? */
static bool is_whole(const struct record_op *rows, const struct steps *s, const struct steps *of)
{
	return s->n && (!of->n || (s->n <= of->n / 2 && 2 * span_ns(rows, s) > span_ns(rows, of)));
}

/* Looks at the communicator @g alone, and takes its steps where @ret has parts of them, or none. */
static int look_at(const struct record *rec, const struct record_op *rows, uint64_t n_rows,
		   const struct record_op *const *sorted, const struct group *g, bool is_sending,
		   struct steps *ret)
{
	CLEANUP(ops_deinit) struct ops o;
	CLEANUP(steps_deinit) struct steps s = {0};
	int r = ops_init(&o, rec, rows, n_rows, sorted + g->first, g->n, is_sending);

	r = r < 0 ? r : try_periods(&o, &s);
	if (r == 0 && (!ret->how[0] || is_whole(rows, &s, ret))) {
		steps_deinit(ret);
		*ret = s;
		s = (struct steps){0};
	}
	return r;
}

/* The communicator that carries most first, then those that carry enough to be no log of values. */
static int look_at_all(const struct record *rec, const struct record_op *rows, uint64_t n_rows,
		       const struct record_op *const *sorted, struct steps *ret)
{
	struct group all = {.n = n_rows}, most = {.n = 0}, g;
	bool is_sending;
	double least;
	int r;

	for (uint64_t i = 0; i < n_rows; i += g.n) {
		g = group_at(sorted, i, n_rows);
		all.reduced += g.reduced;
		all.sent += g.sent;
	}
	is_sending = all.reduced < all.sent / 100;
	for (uint64_t i = 0; i < n_rows; i += g.n) {
		g = group_at(sorted, i, n_rows);
		if (is_sending ? g.sent > most.sent : g.reduced > most.reduced)
			most = g;
	}
	if (!most.n) {
		snprintf(ret->how, sizeof(ret->how),
			 "nothing is reduced and nothing sent from rank to rank, as a backward "
			 "pass does");
		return 0;
	}
	r = look_at(rec, rows, n_rows, sorted, &most, is_sending, ret);
	least = (is_sending ? most.sent : most.reduced) / (double)most.n / LEAST_PART;
	for (uint64_t i = 0; r == 0 && i < n_rows; i += g.n) {
		g = group_at(sorted, i, n_rows);
		if (g.first != most.first && g.reduced > least * (double)g.n)
			r = look_at(rec, rows, n_rows, sorted, &g, false, ret);
		else if (g.first != most.first && g.sent > least * (double)g.n)
			r = look_at(rec, rows, n_rows, sorted, &g, true, ret);
	}
	return r;
}

/* Without what-ifs: those of the first steps count, live and re-timed. */
static double plain_ns(const struct record_op *rows, const struct step *s)
{
	return (double)rows[s->end].plain_arrive_ns - (double)rows[s->first].plain_arrive_ns;
}

/* The first ones are warm-up while they last clearly longer or shorter than those of the second
 * half. */
static int leave_out_warm_up(const struct record_op *rows, struct steps *s)
{
	CLEANUP(freep) double *late = calloc(s->n, sizeof(*late));
	uint64_t n = 0, i = 0;
	double usual, spread;

	if (!late)
		return -ENOMEM;
	for (i = s->n / 2; i < s->n; i++)
		if (s->list[i].is_timed)
			late[n++] = plain_ns(rows, &s->list[i]);
	if (n == 0)
		return 0;
	usual = median(late, n);
	spread = 3 * (late[3 * n / 4] - late[n / 4]);
	if (spread < usual / 10)
		spread = usual / 10;
	for (i = 0; i < s->n / 2; i++) {
		double ns = s->list[i].is_timed ? plain_ns(rows, &s->list[i]) : usual;

		if (ns <= usual + spread && ns >= usual - spread)
			break;
	}
	s->n_warm_up = i;
	return 0;
}

static int count_ops(struct steps *s)
{
	CLEANUP(freep) double *n_ops = calloc(s->n, sizeof(*n_ops));

	if (!n_ops)
		return -ENOMEM;
	for (uint64_t i = s->n_warm_up; i < s->n; i++)
		if (s->list[i].is_timed)
			n_ops[s->n_timed++] = (double)(s->list[i].end - s->list[i].first);
	s->n_ops = (uint64_t)median(n_ops, s->n_timed);
	return 0;
}

int steps_find(const struct record *rec, const struct record_op *rows, uint64_t n,
	       struct steps *ret)
{
	CLEANUP(freep) const struct record_op **sorted = calloc(n + 1, sizeof(*sorted));
	struct steps steps = {0};
	int r;

	if (!sorted)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		sorted[i] = &rows[i];
	qsort(sorted, n, sizeof(*sorted), by_comm);
	r = look_at_all(rec, rows, n, sorted, &steps);
	if (r == 0 && steps.n && rec && rec->header.retimed_of[0])
		steps.n_warm_up =
			rec->header.n_warm_up < steps.n / 2 ? rec->header.n_warm_up : steps.n / 2;
	else if (r == 0 && steps.n)
		r = leave_out_warm_up(rows, &steps);
	if (r == 0 && steps.n)
		r = count_ops(&steps);
	if (r < 0)
		steps_deinit(&steps);
	else
		*ret = steps;
	return r;
}

void steps_deinit(struct steps *s)
{
	free(s->list);
	*s = (struct steps){0};
}
