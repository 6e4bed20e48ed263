/* See skew.h. */
#include "trace/skew.h"

#include "base/rng.h"
#include "trace/finish.h"

int skew_apply(struct trace *t, const struct skew *s)
{
	for (uint32_t i = 0; i < t->n_ops; i++) {
		struct trace_op *op = &t->ops[i];
		uint32_t host = t->ranks[op->rank].host;

		if (op->kind == TRACE_RECV)
			op->start_ns -=
				s->early_ns * (double)(rng_hash(s->seed, i) >> 11) * 0x1p-53;
		op->start_ns += s->ns[host] + s->drift[host] * op->start_ns;
		op->end_ns += s->ns[host] + s->drift[host] * op->end_ns;
	}
	return trace_finish(t);
}
