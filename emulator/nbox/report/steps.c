/* See steps.h. */
#include "nbox/report/steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/report/step-units.h"

#define LEAST_PART \
	100 /* of the mean op of the communicator that carries most: smaller ones are metrics */

static int take_steps(const struct comm_ops *o, const struct step_units *f, struct steps *ret)
{
	uint64_t unit = f->stretches[0].first;
	char bytes[32];

	ret->list = calloc(f->n_units, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	for (uint64_t i = 0; i < f->n; i++) {
		const struct repeats_stretch *s = &f->stretches[i];

		for (uint64_t at = s->first, next; (next = at + f->period) <= repeats_end(s);
		     at = next) {
			struct step *step = &ret->list[ret->n++];

			step->first = o->at[at];
			step->is_timed = next < repeats_end(s);
			step->end = step->is_timed ? o->at[next] : o->at[next - 1] + 1;
		}
	}
	units_print_bytes((uint64_t)fmin(comm_ops_weight(o, unit, unit + f->period), 1e18), bytes,
			  sizeof(bytes));
	snprintf(ret->how, sizeof(ret->how),
		 "%llu op%s of a communicator of %u ranks, %llu times, with %s %s each time",
		 (unsigned long long)f->period, f->period == 1 ? "" : "s in a row",
		 comm_op(o, unit)->of->n_ranks, (unsigned long long)ret->n, bytes,
		 o->is_sending ? "sent and received" : "to reduce");
	if (f->n == 1)
		snprintf(ret->rule, sizeof(ret->rule), "ops=%llu,communicator=%u,skip=%llu",
			 (unsigned long long)f->period, comm_op(o, unit)->comm,
			 (unsigned long long)unit);
	return 0;
}

static int try_periods(const struct comm_ops *o, struct steps *ret)
{
	uint64_t periods[REPEATS_PERIODS_MAX];
	bool has_parts = false;
	int n = repeats_periods(o->sign, o->n, periods), r = n;

	for (int i = 0; r >= 0 && i < n; i++) {
		CLEANUP(step_units_deinit) struct step_units f = {0};
		enum step_verdict verdict;

		r = step_units_judge(o, periods[i], &f, &verdict);
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
		   const struct record_op *const *sorted, const struct comm_group *g,
		   bool is_sending, struct steps *ret)
{
	CLEANUP(comm_ops_deinit) struct comm_ops o;
	CLEANUP(steps_deinit) struct steps s = {0};
	int r = comm_ops_init(&o, rec, rows, n_rows, sorted + g->first, g->n, is_sending);

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
	struct comm_group all = {.n = n_rows}, most = {.n = 0}, g;
	bool is_sending;
	double least;
	int r;

	for (uint64_t i = 0; i < n_rows; i += g.n) {
		g = comm_group_at(sorted, i, n_rows);
		all.reduced += g.reduced;
		all.sent += g.sent;
	}
	is_sending = all.reduced < all.sent / 100;
	for (uint64_t i = 0; i < n_rows; i += g.n) {
		g = comm_group_at(sorted, i, n_rows);
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
		g = comm_group_at(sorted, i, n_rows);
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
	usual = repeats_median(late, n);
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
	s->n_ops = (uint64_t)repeats_median(n_ops, s->n_timed);
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
	qsort(sorted, n, sizeof(*sorted), comm_ops_order);
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
