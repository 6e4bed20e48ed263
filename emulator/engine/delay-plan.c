/* What a scheduler answers, and its checks. */
#include <errno.h>
#include <math.h>

#include "engine/delay-answer.h"
#include "engine/delay.h"
#include "schedule/schedule.h"

static int wrong(const struct delay_instance *in, const char *field, double value, const char *must)
{
	err_set(&in->chain->err, EINVAL, "plan() answered %s %g, which must be %s", field, value,
		must);
	return delay_failed(in, "plan()");
}

static int check_counts(const struct delay_instance *in, const struct nbox_plan *p)
{
	const struct {
		const char *name;
		uint64_t value, least, most;
		const char *must;
	} counts[] = {
		{"algo", p->algo, 0, NBOX_COLLNET, "one of enum nbox_algo"},
		{"proto", p->proto, 0, NBOX_SIMPLE, "one of enum nbox_proto"},
		{"n_lanes", p->n_lanes, 1, SCHED_MAX_CHANNELS, "1 to 1024"},
		{"n_slices", p->n_slices, 1, 1024, "1 to 1024"},
		{"n_rails", p->n_rails, 0, SCHED_MAX_CHANNELS, "1 to 1024"},
		{"chunk_bytes", p->chunk_bytes, 1, SCHED_MAX_BYTES, "1 to 2^46"},
		{"n_candidates", p->n_candidates, 0, NBOX_CANDIDATES_MAX, "at most 32"},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].value < counts[i].least || counts[i].value > counts[i].most)
			return wrong(in, counts[i].name, (double)counts[i].value, counts[i].must);
	return 0;
}

static int check_numbers(const struct delay_instance *in, const struct nbox_plan *p)
{
	const struct {
		const char *name;
		double value;
	} times[] = {
		{"plan()'s base_ns", p->base_ns},
		{"plan()'s step_ns[0]", p->step_ns[0]},
		{"plan()'s step_ns[1]", p->step_ns[1]},
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (delay_check_time(in, times[i].value, false, times[i].name) < 0)
			return -1;
	for (int i = 0; i < 2; i++)
		if (!(p->lane_bytes_per_ns[i] >= 0) || isinf(p->lane_bytes_per_ns[i]))
			return wrong(in, "lane_bytes_per_ns", p->lane_bytes_per_ns[i],
				     "0 or a bandwidth");
	if (!(p->wire_factor >= 1 && p->wire_factor <= 16))
		return wrong(in, "wire_factor", p->wire_factor, "1 to 16");
	for (uint32_t i = 0; i < p->n_candidates; i++) {
		if (!isfinite(p->candidates[i].cost_ns))
			return wrong(in, "a candidate's cost", p->candidates[i].cost_ns, "a time");
		if (!isfinite(p->own_cost_ns[i]))
			return wrong(in, "a candidate's own cost", p->own_cost_ns[i], "a time");
	}
	if (!isfinite(p->estimate_ns))
		return wrong(in, "estimate_ns", p->estimate_ns, "a time");
	return 0;
}

static int check_plan(const struct delay_instance *in, const struct nbox_plan *p)
{
	if (check_counts(in, p) < 0 || check_numbers(in, p) < 0)
		return -1;
	if (p->algo >= NBOX_NVLS)
		return delay_check_time(in, p->whole_ns, false, "plan()'s whole_ns");
	return p->whole_ns < 0 ? 0
			       : wrong(in, "whole_ns", p->whole_ns,
				       "negative, as nbox plays the algorithm itself");
}

int delay_plan(struct delay_chain *d, const struct nbox_op *op, const struct nbox_fabric *fabric,
	       struct nbox_plan *ret, struct err *err)
{
	struct delay_instance *in = d->scheduler;
	struct nbox_plan plan = {
		.struct_size = sizeof(plan),
		.n_slices = 1,
		.n_rails = 1,
		.wire_factor = 1,
		.whole_ns = -1,
		.estimate_ns = -1,
	};
	int r;

	if (!in)
		return 1;
	d->err.text[0] = '\0';
	r = delay_check_return(in, in->plugin.table.plan(in->model, op, fabric, &plan), "plan()");
	if (r == 0)
		r = check_plan(in, &plan);
	if (r == 0) {
		plan.base_ns *= delay_scale(d, op);
		if (plan.whole_ns >= 0)
			plan.whole_ns *= delay_scale(d, op);
		*ret = plan;
		*(plan.is_taken ? &d->taken_by : &d->decided_by) = plan.source;
		if (plan.is_taken && plan.told_lanes)
			d->told_by = plan.told_by;
	}
	return delay_answer(d, r, err);
}
