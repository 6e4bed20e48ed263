/* See arrive.h. */
#include "op/arrive.h"

#include <errno.h>
#include <stdlib.h>

#include "op/moment.h"
#include "op/p2p.h"

int op_define(struct op *op, const struct wire_arrive *a, const char *list, struct err *err)
{
	struct comm *c = op->comm;
	int r;

	if (seq_is_p2p(op->key.seq))
		return p2p_define(op, a, list, err);
	op->number = c->ops->n_ops++;
	r = call_get(c, &c->open->calls, a, &op->call, err);
	if (r < 0)
		return r;
	op->sched = &op->call->sched;
	if (coll_has_root(op->sched->kind))
		op->rooted = ++c->open->n_rooted;
	op->n_flows = op->call->has_border ? op->call->border.n_out : 0;
	op->flows = calloc((size_t)op->n_flows + 1, sizeof(*op->flows));
	return op->flows ? 0 : err_set(err, ENOMEM, "out of memory");
}

bool op_is_same_call(const struct wire_arrive *a, const struct wire_arrive *b)
{
	return a->kind == b->kind && a->count == b->count && a->dtype == b->dtype &&
	       a->root == b->root;
}

int post_arrive(struct post *post, const struct wire_arrive *a, const struct timeline_dep *deps,
		const struct timeline_dep *latest, uint64_t number, struct err *err)
{
	int r;

	post->arrive = *a;
	moment_of_rank(post->op->comm->ops, post->member->world_rank);
	r = timelines_arrive(post->op->comm->ops->timelines, post->member->world_rank,
			     &(struct timeline_point){
				     .name = a->name,
				     .time_ns = a->arrive_ns,
				     .call_ns = a->call_ns,
				     .work_ns = a->work_ns,
				     .host = a->host,
				     .deps = deps,
				     .n_deps = a->n_deps,
				     .latest = latest,
				     .number = number,
				     .queue = post->op->comm->number + 1,
			     },
			     &post->node, &post->arrival, err);
	return r < 0 ? r : moment_arrived(post, err);
}

int ops_point(struct ops *ops, uint32_t world_rank, const struct timeline_point *p,
	      struct timeline_times *ret, struct err *err)
{
	moment_of_rank(ops, world_rank);
	return timelines_point(ops->timelines, world_rank, p, ret, err);
}
