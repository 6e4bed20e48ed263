/* See solve-parts.h. */
#include "engine/solve-parts.h"

#include <errno.h>
#include <math.h>

#include "engine/delay-answer.h"

int solve_no_answer(const struct price *p, struct err *err)
{
	return err_set(err, EINVAL,
		       "the delay model '%s' says nothing about %s of %u ranks by %s: choose "
		       "another model or algorithm",
		       delay_describe(p->delay), coll_kind_name(p->op.kind), p->op.n_ranks,
		       sched_algo_name(p->op.algo));
}

int solve_from_op(struct price *p, struct timing *t, struct err *err)
{
	double ns;
	int r = delay_has_op(p->delay) ? delay_op(p->delay, &p->op, &ns, err) : 1;

	if (r == 0) {
		t->how = SOLVE_OP;
		t->is_of_model = 1;
		t->model_ns = t->end_ns = ns;
	}
	return r;
}

void solve_on_top(double whole_ns, const struct border *border, struct timing *t)
{
	double raw = t->end_ns;
	uint64_t i, n = t->at && border ? border->n_in_messages : 0;

	t->end_ns = fmax(whole_ns + raw - t->model_ns, 0);
	t->model_ns = whole_ns;
	for (i = 0; i < n && t->end_ns < raw; i++)
		t->at[i] = fmin(t->at[i] * (t->end_ns / raw), t->end_ns);
}

int solve_finish(struct price *p, const struct border *border, struct timing *t, struct err *err)
{
	double raw = t->end_ns, extra = 0;
	uint64_t i, n = t->at && border ? border->n_in_messages : 0;
	int r = delay_extra(p->delay, &p->op, raw, t->how != SOLVE_OP, &extra, &t->is_ahead, err);

	if (r)
		return r;
	if (!(raw + extra <= DELAY_MAX_NS))
		return err_set(
			err, EINVAL,
			"the op would take %g ns, more than 31 years: look at bandwidths and "
			"what-ifs",
			raw + extra);
	t->end_ns = raw + extra > 0 ? raw + extra : 0;
	t->extra_ns = t->end_ns - raw;
	t->is_ahead &= t->extra_ns < 0;
	for (i = 0; i < n && t->end_ns < raw; i++)
		t->at[i] *= t->end_ns / raw;
	for (i = 0; i < n && t->end_ns < raw; i++)
		t->at[i] = fmin(t->at[i], t->end_ns);
	return border && !t->at ? timing_spread(t, border, err) : 0;
}
