/* The environment of one of the job's processes: nbox's own, with libnbox.so preloaded, the
 * cluster's variables, and for a plain program those that torchrun sets. */
#pragma once

#include <limits.h>

#include "nbox/run/nboxd-proc.h"
#include "nbox/run/run.h"

struct rank_env {
	const struct run *run;
	const struct nboxd_proc *nboxd;
	const char *token;
	uint32_t proc, n_procs;                  /* this process, and how many there are here */
	int port;                                /* free on loopback */
	char shim[PATH_MAX], standins[PATH_MAX]; /* by rank_env_init() */
};

/* Finds names of libnbox.so and of the stand-ins that the dynamic linker can take. They hold while
 * this process lives. Return: 0; negative errno with the sentence. */
int rank_env_init(struct rank_env *e, struct err *err);
/* For struct job_env. @ctx: a struct rank_env. Return: 0; negative errno. */
int rank_env_set(void *ctx);
