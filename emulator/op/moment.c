/* See moment.h. */
#include "op/moment.h"

#include <errno.h>
#include <math.h>

static uint32_t index_of(const struct cluster *c, uint32_t world_rank)
{
	uint32_t low = 0, high = (uint32_t)c->n_real;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->real[mid] < world_rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct target_comm comm_of(const struct comm *c, char *axes, size_t size)
{
	const struct cluster *cluster = c->ops->cluster;

	members_axes_name(cluster->layouts, cluster->n_layouts, c->members.axes, axes, size);
	return (struct target_comm){.number = c->number,
				    .is_world = c->n_ranks == topology_world(cluster->topology),
				    .axes = axes};
}

static uint64_t bytes_of(const struct op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; op->p2p && i < op->p2p->pair.n_calls; i++)
		bytes += op->p2p->calls[i].bytes;
	return op->p2p ? bytes : op->sched->bytes;
}

void moment_of_rank(struct ops *ops, uint32_t world_rank)
{
	const struct moment at = {.step = step_count_of(ops->steps,
							index_of(ops->cluster, world_rank)),
				  .counted = ops->steps};

	if (ops->steps)
		delay_set_moment(ops->delay, &at, NULL);
}

void moment_of_op(const struct op *op)
{
	struct ops *ops = op->comm->ops;
	struct moment at = {.time_ns = -INFINITY, .step = 0, .counted = ops->steps};
	struct target_comm comm;
	char axes[64];

	if (!ops->has_moments)
		return;
	for (uint32_t i = 0; i < op->n_posts; i++) {
		const struct post *post = &op->posts[i];

		if (!post->has_arrived)
			continue;
		at.time_ns = fmax(at.time_ns, timeline_start(post->node, post->member->world_rank));
		at.step = post->step > at.step ? post->step : at.step;
	}
	comm = comm_of(op->comm, axes, sizeof(axes));
	delay_set_moment(ops->delay, &at, &comm);
}

void moment_of_run(const struct run *run)
{
	bool is_alltoall =
		run->call ? run->posts[0]->op->sched->kind == COLL_ALLTOALL : !run->has_messages;
	double window = INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++)
		window = fmin(window, timeline_window(run->posts[i]->node));
	delay_set_window(run->comm->ops->delay, is_alltoall ? window : -1);
}

int moment_arrived(struct post *post, struct err *err)
{
	const struct op *op = post->op;
	struct ops *ops = op->comm->ops;
	uint32_t world_rank = post->member->world_rank, i = index_of(ops->cluster, world_rank);
	struct target_comm comm;
	struct moment at;
	char axes[64];
	int r;

	if (!ops->steps)
		return 0;
	comm = comm_of(op->comm, axes, sizeof(axes));
	at.time_ns = timeline_arrival(post->node, world_rank);
	r = step_count_arrive(ops->steps, i, op->sched->kind, bytes_of(op), &comm, at.time_ns);
	at.step = post->step = step_count_of(ops->steps, i);
	at.counted = ops->steps;
	if (r > 0)
		r = link_changes_step(ops->config->link_changes, ops->config->n_link_changes, &at,
				      ops->overlap[0]);
	return r < 0 ? err_set(err, -r, "no memory for the steps of a run") : 0;
}
