/* See late.h. */
#include "nboxd/op/late.h"

#include <math.h>

#include "engine/price.h"

/* nbox_op.host while arrivals are asked for. */
struct asked {
	const struct late_op *op;
	size_t i;
};

static int has_rank(const struct nbox_op *op, uint32_t world_rank)
{
	const struct asked *a = op->host;

	return a->op->copies(a->op->ctx, a->i, world_rank);
}

int late_start(const struct late_op *op, const struct late_member *m, size_t n,
	       uint64_t *ret_start_ns, double *ret_late_ns, struct err *err)
{
	struct asked asked = {.op = op};
	uint64_t start_ns = 0;
	double last = 0, late;
	struct price price;

	for (size_t i = 0; i < n; i++)
		if (m[i].arrive->arrive_ns > start_ns)
			start_ns = m[i].arrive->arrive_ns;
	if (op) {
		price_init(&price, op->sched, op->topology, op->members, op->delay, op->number,
			   err);
		price.op.has_rank = has_rank;
		price.op.host = &asked;
	}
	for (asked.i = 0; op && asked.i < n; asked.i++) {
		const struct wire_arrive *a = m[asked.i].arrive;
		int r;

		price.op.n_ranks = m[asked.i].n_ranks;
		r = delay_arrival(op->delay, &price.op, (double)a->compute_ns, &late, err);
		if (r < 0)
			return r;
		late -= (double)(start_ns - a->arrive_ns);
		last = r == 0 && late > last ? late : last;
	}
	*ret_late_ns = ceil(last);
	*ret_start_ns = start_ns + (uint64_t)*ret_late_ns;
	return 0;
}
