/* See mesh.h. */
#include "mesh/mesh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Bits of @n hosts from @host on. */
static uint64_t hosts_of(const struct mesh_replicas *r)
{
	return (UINT64_MAX >> (64 - r->hosts)) << r->host;
}

/* Return: bytes that both tiles have. */
static uint64_t common(const struct mesh_tensor *t, const struct mesh_box *a,
		       const struct mesh_box *b)
{
	uint64_t elements = 1;

	for (uint32_t i = 0; i < t->n_dims; i++) {
		uint64_t lo = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];
		uint64_t hi = a->hi[i] < b->hi[i] ? a->hi[i] : b->hi[i];

		elements *= hi > lo ? hi - lo : 0;
	}
	return elements * t->element_bytes;
}

void mesh_task_box(const struct mesh_reshard *r, uint32_t task, struct mesh_box *ret)
{
	struct mesh_box src, dst;

	mesh_tile_box(&r->src, &r->tensor, r->tasks[task].src_tile, &src);
	mesh_tile_box(&r->dst, &r->tensor, r->tasks[task].dst_tile, &dst);
	for (uint32_t i = 0; i < r->tensor.n_dims; i++) {
		ret->lo[i] = src.lo[i] > dst.lo[i] ? src.lo[i] : dst.lo[i];
		ret->hi[i] = src.hi[i] < dst.hi[i] ? src.hi[i] : dst.hi[i];
	}
}

static int add_task(struct mesh_reshard *r, uint32_t *room, uint32_t src_tile, uint32_t dst_tile,
		    uint64_t bytes)
{
	struct mesh_replicas src, dst;

	if (r->n == *room) {
		struct mesh_task *more = realloc(r->tasks, (*room * 2 + 16) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->tasks = more;
		*room = *room * 2 + 16;
	}
	mesh_replicas(&r->src, src_tile, &src);
	mesh_replicas(&r->dst, dst_tile, &dst);
	r->tasks[r->n++] = (struct mesh_task){
		.src_tile = src_tile,
		.dst_tile = dst_tile,
		.bytes = bytes,
		.senders = hosts_of(&src),
		.receivers = hosts_of(&dst),
		.to = {dst.hosts, dst.devices},
	};
	return 0;
}

/* Tasks of one destination tile. */
static int add_tasks(struct mesh_reshard *r, uint32_t *room, uint32_t dst_tile, struct err *err)
{
	struct mesh_box src, dst;
	int s = 0;

	mesh_tile_box(&r->dst, &r->tensor, dst_tile, &dst);
	for (uint32_t i = 0; s == 0 && i < mesh_tiles(&r->src); i++) {
		uint64_t bytes;

		mesh_tile_box(&r->src, &r->tensor, i, &src);
		bytes = common(&r->tensor, &src, &dst);
		if (bytes && r->n == TURNS_TASKS_MAX)
			return err_set(err, EINVAL,
				       "more than 2^20 unit tasks; take smaller meshes");
		if (bytes)
			s = add_task(r, room, i, dst_tile, bytes);
	}
	return s < 0 ? err_set(err, ENOMEM, "no memory for %u unit tasks", r->n + 1) : 0;
}

int mesh_reshard_init(struct mesh_reshard *r, const struct mesh_tensor *tensor,
		      const struct mesh_spec *src, const struct mesh_spec *dst, struct err *err)
{
	uint32_t room = 0;
	int s = 0;

	*r = (struct mesh_reshard){.tensor = *tensor, .src = *src, .dst = *dst};
	if (src->n_dims != tensor->n_dims || dst->n_dims != tensor->n_dims)
		return err_set(err, EINVAL,
			       "the tensor has %u dimensions, the source's layout %u and the "
			       "destination's %u symbols",
			       tensor->n_dims, src->n_dims, dst->n_dims);
	for (uint32_t i = 0; s == 0 && i < mesh_tiles(dst); i++)
		s = add_tasks(r, &room, i, err);
	if (s < 0)
		mesh_reshard_deinit(r);
	return s;
}

void mesh_reshard_deinit(struct mesh_reshard *r)
{
	free(r->tasks);
	r->tasks = NULL;
	r->n = 0;
}

uint32_t mesh_task_receiver(const struct mesh_reshard *r, uint32_t task, uint32_t place)
{
	struct mesh_replicas to;

	mesh_replicas(&r->dst, r->tasks[task].dst_tile, &to);
	return (to.host + place / to.devices) * r->dst.devices + to.device + place % to.devices;
}

uint32_t mesh_task_sender(const struct mesh_reshard *r, uint32_t task, uint32_t host)
{
	struct mesh_replicas from;

	mesh_replicas(&r->src, r->tasks[task].src_tile, &from);
	return host * r->src.devices + from.device + task % from.devices;
}

int mesh_plan(const struct mesh_reshard *r, enum mesh_strategy strategy, const struct mesh_net *net,
	      enum turns_algo algo, const struct turns_effort *effort, struct turns *ret,
	      struct err *err)
{
	CLEANUP(freep) struct turns_task *tasks = malloc((r->n ? r->n : 1) * sizeof(*tasks));

	if (!tasks)
		return err_set(err, ENOMEM, "no memory for %u unit tasks", r->n);
	for (uint32_t i = 0; i < r->n; i++)
		tasks[i] = (struct turns_task){
			.senders = r->tasks[i].senders,
			.receivers = r->tasks[i].receivers,
			.ns = mesh_strategy_ns(strategy, r->tasks[i].bytes, r->tasks[i].to, net),
		};
	return turns_make(tasks, r->n, algo, effort, ret, err);
}

static void at_least(double *at, double ns)
{
	*at = ns > *at ? ns : *at;
}

void mesh_done(const struct mesh_reshard *r, enum mesh_strategy strategy,
	       const struct mesh_net *net, const struct turns *plan, double *ret_dst,
	       double *ret_src)
{
	for (uint32_t i = 0; ret_dst && i < r->dst.hosts * r->dst.devices; i++)
		ret_dst[i] = 0;
	for (uint32_t i = 0; ret_src && i < r->src.hosts * r->src.devices; i++)
		ret_src[i] = 0;
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct turn *turn = &plan->turns[i];
		const struct mesh_task *task = &r->tasks[turn->task];
		uint32_t places = ret_dst ? task->to.hosts * task->to.devices : 0;

		if (ret_src)
			at_least(&ret_src[mesh_task_sender(r, turn->task, turn->sender)],
				 turn->end_ns);
		for (uint32_t p = 0; p < places; p++)
			at_least(&ret_dst[mesh_task_receiver(r, turn->task, p)],
				 turn->start_ns + mesh_strategy_done_ns(strategy, task->bytes,
									task->to, p, net));
	}
}
