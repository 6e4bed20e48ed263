/* A resharding: a tensor moves from the devices of one mesh to those of another, where it lies
 * otherwise. What a source and a destination tile have in common is a unit task: any replica of the
 * source tile sends it to all replicas of the destination tile. A plan says which host sends each,
 * and when; strategy.h how. (AlpaComm, Zhuang et al., MLSys 2023.)
 *
 * Devices are numbered host by host, each mesh from 0. */
#pragma once

#include "mesh/spec.h"
#include "mesh/strategy.h"
#include "mesh/turns.h"

struct mesh_task {
	uint32_t src_tile, dst_tile;
	uint64_t bytes;
	uint64_t senders,
		receivers; /* hosts of the source and of the destination mesh, a bit each */
	struct mesh_group to;
};

struct mesh_reshard {
	struct mesh_tensor tensor;
	struct mesh_spec src, dst;
	struct mesh_task *tasks; /* owned; by destination tile, then source tile */
	uint32_t n;
};

/* Return: 0; -EINVAL with the sentence: the specs have not the tensor's dimensions, more than
 * TURNS_TASKS_MAX tasks; -ENOMEM. */
int mesh_reshard_init(struct mesh_reshard *r, const struct mesh_tensor *tensor,
		      const struct mesh_spec *src, const struct mesh_spec *dst, struct err *err);
void mesh_reshard_deinit(struct mesh_reshard *r);
/* What the task moves. */
void mesh_task_box(const struct mesh_reshard *r, uint32_t task, struct mesh_box *ret);
/* The device at @place of the devices that receive it, and that of the sending host which sends it:
 * of several replicas there the tasks take turns. */
uint32_t mesh_task_receiver(const struct mesh_reshard *r, uint32_t task, uint32_t place);
uint32_t mesh_task_sender(const struct mesh_reshard *r, uint32_t task, uint32_t host);

/* Plans it. *ret is the caller's to turns_deinit(). Return: as turns_make(). */
int mesh_plan(const struct mesh_reshard *r, enum mesh_strategy strategy, const struct mesh_net *net,
	      enum turns_algo algo, const struct turns_effort *effort, struct turns *ret,
	      struct err *err);
/* When each destination device has all of its tile, and each source device has sent all that it
 * sends, from the plan's beginning: 0 where it has nothing to do. @ret_dst, @ret_src: as many as
 * the mesh has devices; either may be NULL. */
void mesh_done(const struct mesh_reshard *r, enum mesh_strategy strategy,
	       const struct mesh_net *net, const struct turns *plan, double *ret_dst,
	       double *ret_src);
