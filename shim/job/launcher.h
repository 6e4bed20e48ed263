/* Rewrites what a launcher told a worker about its world to the virtual one, before the program's
 * main(): torchrun says WORLD_SIZE=8, and the job is to see 512. The environment and the command
 * line alone decide which process is a worker. Any other process (shell, compiler, the launcher
 * itself, a data loader) stays as it was: the shim touches no file, thread or library of it, and
 * prints nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define LAUNCHER_SETS_MAX 40
#define LAUNCHER_VALUE_MAX 256

struct launcher_set {
	const char *name;
	const char *text; /* borrowed; NULL: value */
	char value[LAUNCHER_VALUE_MAX];
};

enum launcher_source {
	LAUNCHER_NONE,  /* no worker */
	LAUNCHER_TORCH, /* RANK, WORLD_SIZE, MASTER_...: torchrun, accelerate, deepspeed, by hand */
	LAUNCHER_SLURM, /* SLURM_PROCID */
	LAUNCHER_OMPI,  /* OMPI_COMM_WORLD_RANK */
	LAUNCHER_MV2,   /* MV2_COMM_WORLD_RANK */
	LAUNCHER_PMI,   /* PMI_RANK: Hydra, Intel MPI */
};

struct launcher_plan {
	enum launcher_source source;
	uint32_t n;
	struct launcher_set sets[LAUNCHER_SETS_MAX];
	const char *note; /* for the run's summary: what was taken from the job; static, or NULL */
	int error; /* 0; -EINVAL: the worker has no place in the virtual world, and @problem says
		      why */
	struct err problem;
};

struct launcher_input {
	const char *(*get)(void *ctx, const char *name); /* as getenv() */
	void *ctx;
	int argc;
	char *const *argv;
	const char *self; /* path of libnbox.so for callers that open NCCL by name; NULL: unknown */
};

/* A worker's place in the job, as its launcher says it. */
struct launcher_place {
	enum launcher_source source; /* LAUNCHER_NONE: no worker, and the rest is 0 */
	uint32_t rank, n_ranks, local_rank, local_size;
	bool is_rewritten; /* inherited from a worker whose variables were rewritten */
};

/* Return: false: it is no worker, or NBOX_ENABLE is 0. */
bool launcher_find(const struct launcher_input *in, struct launcher_place *ret);
/* Decides what is to be set, without side effects. Deciding again on the result gives an empty
 * plan. */
void launcher_decide(const struct launcher_input *in, struct launcher_plan *ret);

/* Where the constructor found this process to be. */
const struct launcher_place *launcher_place(void);
/* What the constructor found wrong, for the first NCCL call. Return: 0 or -EINVAL. */
int launcher_problem(struct err *err);
/* What the constructor changed that the user had set: for the run's summary; NULL: nothing. */
const char *launcher_note(void);
