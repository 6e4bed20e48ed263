/* The environment of one of the job's processes. */
#pragma once

#include "nbox/run/job.h"
#include "nbox/run/run.h"

/* Makes @env, the caller's to deinit also after an error: nbox's own environment, with libnbox.so
 * preloaded, the cluster's variables, and for a plain program those that torchrun sets.
 * @proc: of @n_procs processes here; @port: free on loopback; @addr, @store, @token: nboxd's.
 * Return: 0; negative errno. */
int rank_env(const struct run *r, struct job_env *env, uint32_t proc, uint32_t n_procs, int port,
	     const char *addr, const char *store, const char *token);
