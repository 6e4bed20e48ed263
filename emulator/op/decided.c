/* See decided.h. */
#include "op/decided.h"

#include <stdio.h>

#include "engine/delay.h"

static bool is_same(const struct sched_took *a, const struct wire_took *b)
{
	return a->algorithm == b->algorithm && a->protocol == b->protocol &&
	       a->n_channels == b->n_channels;
}

static void warn_differs(const struct post *post)
{
	struct ops *ops = post->op->comm->ops;
	char name[OP_NAME_MAX];

	if (ops->decided.is_difference_told)
		return;
	ops->decided.is_difference_told = true;
	ops_warn(
		ops,
		"%s: NCCL takes another algorithm, protocol or number of channels in rank %u than in "
		"rank %u, by which the times go: do their processes have the same NCCL_ variables?",
		op_name(post->op->key.seq, post->member->rank, post->op->comm->number, name,
			sizeof(name)),
		post->member->rank, op_first_arrived(post->op)->member->rank);
}

int decided_take(struct post *post, struct err *err)
{
	struct op *op = post->op;
	struct call *call;
	int r;

	if (!op->call || op->call->has_border || !post->arrive.took.n_channels ||
	    is_same(&op->call->key.took, &post->arrive.took))
		return 0;
	if (op->call->key.took.n_channels) {
		warn_differs(post);
		return 0;
	}
	r = call_get(op->comm, &op->comm->open->calls, &post->arrive, &call, err);
	if (r < 0)
		return r;
	op->call->n_users--;
	op->call = call;
	op->sched = &call->sched;
	return 0;
}

static void warn_not_taken(const struct run *run)
{
	struct ops *ops = run->comm->ops;
	const struct post *first = run->posts[0];
	char name[OP_NAME_MAX];

	if (ops->decided.is_other_told)
		return;
	ops->decided.is_other_told = true;
	ops_warn(ops, "%s (%s): the model %s does not time what NCCL took, but its own choice: %s",
		 op_name(first->op->key.seq, first->member->rank, run->comm->number, name,
			 sizeof(name)),
		 coll_kind_name(run->call->key.kind), delay_describe(ops->delay),
		 run->timing.plan.why_not_taken);
}

void decided_count(const struct run *run)
{
	struct ops_decided *n = &run->comm->ops->decided;

	n->n++;
	n->n_by_nccl += run->timing.plan.is_taken;
	if (run->timing.plan.why_not_taken)
		warn_not_taken(run);
}

char *decided_print(const struct ops *ops, char *buf, size_t size)
{
	const struct ops_decided *n = &ops->decided;
	const char *rule = ops->delay ? delay_decided_by(ops->delay) : NULL;
	const char *nccl = ops->delay ? delay_taken_by(ops->delay) : NULL;

	if (nccl)
		snprintf(buf, size, "%s (%llu of %llu collectives)%s%s", nccl,
			 (unsigned long long)n->n_by_nccl, (unsigned long long)n->n,
			 rule ? "; else " : "", rule ? rule : "");
	else
		snprintf(buf, size, "%s", rule ? rule : "");
	return buf;
}
