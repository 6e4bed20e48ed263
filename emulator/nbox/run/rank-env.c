/* See rank-env.h. */
#include "nbox/run/rank-env.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/run/env.h"
#include "nbox/run/launcher.h"
#include "nbox/run/loader-path.h"

int rank_env_init(struct rank_env *e, struct err *err)
{
	const struct paths *p = &e->run->paths;
	int r = 0;

	if (e->run->device == RUN_DEVICE_HOST)
		r = loader_path(p->standins, LOADER_LIBRARY_PATH, e->standins, sizeof(e->standins),
				err);
	if (r == 0 && !e->run->is_plain)
		r = loader_path(p->shim, LOADER_PRELOAD, e->shim, sizeof(e->shim), err);
	return r;
}

static int set_in_env(void *ctx, const char *name, const char *value)
{
	(void)ctx;
	return env_set(name, "%s", value);
}

/* What libnbox.so reads. */
static int set_nbox(const struct rank_env *e)
{
	int r = env_prepend("LD_PRELOAD", e->shim);

	if (r == 0)
		r = env_set("NBOX_ADDR", "%s", e->nboxd->addr);
	if (r == 0)
		r = env_set("NBOX_TOKEN", "%s", e->token);
	if (r == 0)
		r = env_set("NBOX_DEVICE", "%s",
			    e->run->device == RUN_DEVICE_HOST ? "host" : "cuda");
	if (r == 0 && e->nboxd->store[0])
		r = env_set("NBOX_STORE", "%s", e->nboxd->store);
	if (r == 0 && e->run->is_launcher)
		r = run_launcher_env(e->run);
	return r == 0 ? config_worker_env(e->run->config, set_in_env, NULL) : r;
}

/* What torchrun sets, for plain programs. */
static int set_torchrun(const struct rank_env *e, uint32_t rank, uint32_t local_world)
{
	const struct config *c = e->run->config;
	bool is_plain = e->run->is_plain;
	uint32_t gpus = c->topology.gpus_per_node, world = is_plain ? e->n_procs : c->world;
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{"RANK", rank},
		{"LOCAL_RANK", is_plain ? e->proc : rank % gpus},
		{"WORLD_SIZE", world},
		{"LOCAL_WORLD_SIZE", local_world},
		{"GROUP_RANK", is_plain ? 0 : rank / gpus},
		{"GROUP_WORLD_SIZE", is_plain ? 1 : c->topology.n_nodes},
		{"MASTER_PORT", (uint32_t)e->port},
		{"NBOX_WORLD", world}, /* these are the virtual world's already */
	};
	int r = env_set("MASTER_ADDR", "127.0.0.1");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++)
		r = env_set(numbers[i].name, "%u", numbers[i].value);
	/* Rank 0 has no process that hands out the id, so all real ranks make the same one. */
	if (r == 0 && !is_plain && c->real[0] != 0 && !getenv("NCCL_COMM_ID"))
		r = env_set("NCCL_COMM_ID", "127.0.0.1:%d", e->port);
	return r;
}

int rank_env_set(void *ctx)
{
	const struct rank_env *e = ctx;
	const struct run *run = e->run;
	const struct config *c = run->config;
	uint32_t gpus = c->topology.gpus_per_node;
	uint32_t rank = run->is_plain ? e->proc : c->real[e->proc];
	uint32_t local_world = run->is_plain ? e->n_procs : 0;
	int r = 0;

	/* how many of this node's ranks have a process here */
	for (uint32_t i = 0; !run->is_plain && i < e->n_procs; i++)
		local_world += c->real[i] / gpus == rank / gpus;
	if (run->is_launcher)
		local_world = run->n_launcher_ranks;
	if (e->standins[0]) {
		r = env_prepend("LD_LIBRARY_PATH", e->standins);
		if (r == 0)
			r = env_set("NBOX_HOST_DEVICES", "%u",
				    gpus > local_world ? gpus : local_world);
	}
	if (r == 0 && run->kernels[0])
		r = env_set("NBOX_HOST_KERNEL_TIME", "%s", run->kernels);
	if (r == 0 && !run->is_plain)
		r = set_nbox(e);
	return r < 0 || run->is_launcher ? r : set_torchrun(e, rank, local_world);
}
