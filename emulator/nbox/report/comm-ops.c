/* See comm-ops.h. */
#include "nbox/report/comm-ops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "nbox/report/waits.h"
#include "schedule/coll.h"

void comm_ops_deinit(struct comm_ops *o)
{
	free(o->at);
	free(o->sign);
	free(o->weights);
	free(o->busy_ns);
	free(o->waits);
}

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

double comm_op_weight(const struct comm_ops *o, const struct record_op *r)
{
	return o->is_sending ? sent_bytes(r) : reduced_bytes(r);
}

int comm_ops_order(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	if ((*a)->comm != (*b)->comm)
		return (*a)->comm < (*b)->comm ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

struct comm_group comm_group_at(const struct record_op *const *rows, uint64_t first,
				uint64_t n_rows)
{
	struct comm_group g = {.first = first};

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

int comm_ops_init(struct comm_ops *o, const struct record *rec, const struct record_op *rows,
		  uint64_t n_rows, const struct record_op *const *of_group, uint64_t n,
		  bool is_sending)
{
	*o = (struct comm_ops){.rows = rows, .n_rows = n_rows, .n = n, .is_sending = is_sending};
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
		o->weights[i + 1] = o->weights[i] + comm_op_weight(o, r);
		o->busy_ns[i + 1] =
			o->busy_ns[i] +
			(end > r->virtual_arrive_ns ? (double)(end - r->virtual_arrive_ns) : 0);
	}
	return waits_find(rec, rows, n_rows, o->at, o->n, o->waits);
}

const struct record_op *comm_op(const struct comm_ops *o, uint64_t i)
{
	return &o->rows[o->at[i]];
}

double comm_ops_idle_ns(const struct comm_ops *o, uint64_t from, uint64_t to)
{
	return (double)(comm_op(o, to)->virtual_arrive_ns - comm_op(o, from)->virtual_arrive_ns) -
	       (o->busy_ns[to] - o->busy_ns[from]);
}

double comm_ops_weight(const struct comm_ops *o, uint64_t from, uint64_t to)
{
	return o->weights[to] - o->weights[from];
}
