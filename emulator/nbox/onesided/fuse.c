/* See fuse.h. */
#include "nbox/onesided/fuse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "schedule/coll.h"

static bool is_alltoall(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE && op->coll == COLL_ALLTOALL;
}

/* How long its rank's kernels called @name run between all-to-all @i and the next one in direction
 * @way; *ret_end: when the last of them ends. */
static double time_of(const struct trace *t, uint32_t i, int way, const char *name, double *ret_end)
{
	const struct trace_op *own = &t->ops[i];
	const struct trace_rank *rank = &t->ranks[own->rank];
	double ns = 0;

	for (int64_t k = (int64_t)i + way; k >= rank->first && k < (int64_t)rank->first + rank->n;
	     k += way) {
		const struct trace_op *op = &t->ops[k];

		if (is_alltoall(op))
			break;
		if (!name || op->kind != TRACE_COMPUTE || !strstr(trace_name(t, op->name), name))
			continue;
		ns += op->end_ns - op->start_ns;
		*ret_end = fmax(*ret_end, op->end_ns);
	}
	return ns;
}

/* Adds the all-to-all with these @n ops. */
static void add(const struct trace *t, const uint32_t *ops, uint32_t n, const char *lookup,
		const char *unpack, struct fused *f)
{
	double lookup_ns = 0, unpack_ns = 0, wire_ns = INFINITY, sync_ns = 0, come = -INFINITY;
	const struct trace_op *first = &t->ops[ops[0]];
	uint32_t n_ranks = first->comm == TRACE_NONE ? 0 : t->comms[first->comm].n;

	for (uint32_t k = 0; k < n; k++) {
		const struct trace_op *op = &t->ops[ops[k]];
		double end = -INFINITY, unused = 0;

		lookup_ns = fmax(lookup_ns, time_of(t, ops[k], -1, lookup, &end));
		unpack_ns = fmax(unpack_ns, time_of(t, ops[k], 1, unpack, &unused));
		wire_ns = fmin(wire_ns, op->end_ns - op->start_ns);
		if (op->start_ns > come)
			sync_ns = isinf(end) ? 0 : fmax(0, op->start_ns - end);
		come = fmax(come, op->start_ns);
	}
	if (!(lookup_ns > 0) || n_ranks < 2 || !first->bytes) {
		f->n_others++;
		return;
	}
	f->n++;
	f->n_ranks = n_ranks;
	f->lookup_ns += (lookup_ns - f->lookup_ns) / f->n;
	f->sync_ns += (sync_ns - f->sync_ns) / f->n;
	f->wire_ns += (wire_ns - f->wire_ns) / f->n;
	f->unpack_ns += (unpack_ns - f->unpack_ns) / f->n;
	f->bytes += ((double)first->bytes * (n_ranks - 1) - f->bytes) / f->n;
}

int fuse_find(const struct trace *t, const char *lookup, const char *unpack, struct fused *ret,
	      struct err *err)
{
	*ret = (struct fused){0};
	for (uint32_t i = 0; i < t->n_ops; i++) {
		uint32_t join = t->ops[i].join;
		const uint32_t *ops = join == TRACE_NONE ? &i : t->joined + t->first_joined[join];
		uint32_t n =
			join == TRACE_NONE ? 1 : t->first_joined[join + 1] - t->first_joined[join];

		if (is_alltoall(&t->ops[i]) && ops[0] == i)
			add(t, ops, n, lookup, unpack, ret);
	}
	return ret->n ? 0
		      : err_set(err, ENODATA,
				"no all-to-all of known size with a kernel '%s' before it (%u "
				"others)",
				lookup, ret->n_others);
}

void fuse_fill(const struct fused *f, struct onesided *o)
{
	o->n_ranks = f->n_ranks;
	o->compute_ns = f->lookup_ns;
	o->sync_ns = f->sync_ns;
	o->tables = 1;
	o->samples = (uint64_t)llround(f->bytes * f->n_ranks / (f->n_ranks - 1) / o->vector_bytes);
	o->alpha_ns = fmin(o->alpha_ns, f->wire_ns / 2);
	o->bandwidth = f->bytes / (f->wire_ns - o->alpha_ns);
	o->unpack = f->unpack_ns > 0 ? f->bytes / f->unpack_ns : 0;
}
