/* See rank-env.h. */
#include "nbox/run/rank-env.h"

#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/run/launcher.h"
#include "nbox/run/loader-path.h"

static int prepend_path(struct job_env *env, const char *name, const char *path,
			const char *dividers)
{
	char usable[PATH_MAX];
	int code = loader_path(path, dividers, usable, sizeof(usable), NULL);

	return code < 0 ? code : job_env_prepend(env, name, usable);
}

static int set_in_env(void *ctx, const char *name, const char *value)
{
	return job_env_set(ctx, name, "%s", value);
}

int rank_env(const struct run *r, struct job_env *env, uint32_t proc, uint32_t n_procs, int port,
	     const char *addr, const char *store, const char *token)
{
	const struct config *c = r->config;
	uint32_t gpus = c->topology.gpus_per_node;
	uint32_t rank = r->is_plain ? proc : c->real[proc];
	uint32_t world = r->is_plain ? n_procs : c->world;
	uint32_t local_world = r->is_plain ? n_procs : 0;
	int code = job_env_init(env);

	/* how many of this node's ranks have a process here */
	for (uint32_t i = 0; !r->is_plain && i < n_procs; i++)
		local_world += c->real[i] / gpus == rank / gpus;
	if (r->is_launcher)
		local_world = r->n_launcher_ranks;
	if (code == 0 && r->device == RUN_DEVICE_HOST) {
		code = prepend_path(env, "LD_LIBRARY_PATH", r->paths.standins, LOADER_LIBRARY_PATH);
		if (code == 0)
			code = job_env_set(env, "NBOX_HOST_DEVICES", "%u",
					   gpus > local_world ? gpus : local_world);
	}
	if (code == 0 && !r->is_plain) {
		code = prepend_path(env, "LD_PRELOAD", r->paths.shim, LOADER_PRELOAD);
		if (code == 0)
			code = job_env_set(env, "NBOX_ADDR", "%s", addr);
		if (code == 0)
			code = job_env_set(env, "NBOX_TOKEN", "%s", token);
		if (code == 0)
			code = job_env_set(env, "NBOX_DEVICE", "%s",
					   r->device == RUN_DEVICE_HOST ? "host" : "cuda");
	}
	if (code == 0 && store && store[0])
		code = job_env_set(env, "NBOX_STORE", "%s", store);
	if (code == 0 && r->is_launcher && !r->is_plain)
		code = run_launcher_env(r, env);
	if (code == 0 && !r->is_plain)
		code = config_worker_env(c, set_in_env, env);
	if (code < 0 || r->is_launcher)
		return code;
	/* what torchrun sets, for plain programs */
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{"RANK", rank},
		{"LOCAL_RANK", r->is_plain ? proc : rank % gpus},
		{"WORLD_SIZE", world},
		{"LOCAL_WORLD_SIZE", local_world},
		{"GROUP_RANK", r->is_plain ? 0 : rank / gpus},
		{"GROUP_WORLD_SIZE", r->is_plain ? 1 : c->topology.n_nodes},
		{"MASTER_PORT", (uint32_t)port},
		{"NBOX_WORLD", world}, /* these are the virtual world's already */
	};

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(numbers); i++)
		code = job_env_set(env, numbers[i].name, "%u", numbers[i].value);
	if (code == 0)
		code = job_env_set(env, "MASTER_ADDR", "127.0.0.1");
	/* Nobody plays rank 0's part of handing out the id, so all make the same one */
	if (code == 0 && !r->is_plain && c->real[0] != 0 && !getenv("NCCL_COMM_ID"))
		code = job_env_set(env, "NCCL_COMM_ID", "127.0.0.1:%d", port);
	return code;
}
