/* What a launcher told a worker about its world, rewritten to the virtual one before
 * the program's main(): torchrun says WORLD_SIZE=8, the job is to see 512. Decided
 * from the environment and the command line alone: no file, thread or library is
 * touched, nothing is printed, and a process that is no worker (shell, compiler, the
 * launcher itself, a data loader) is left as it was. */
#pragma once

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
	int code; /* -EINVAL: a worker that cannot be placed in the virtual world; why: */
	struct err problem;
};

struct launcher_input {
	const char *(*get)(void *ctx, const char *name); /* as getenv() */
	void *ctx;
	int argc;
	char *const *argv;
	const char *self; /* path of libnbox.so for callers that open NCCL by name; NULL: unknown */
};

/* What is to be set, and nothing else: no side effects. The same again on the result is
 * an empty plan. */
void launcher_decide(const struct launcher_input *in, struct launcher_plan *ret);

/* "first", "last" or a number, for a world of @nodes of which @real are real.
 * Return: 0; -EINVAL with the sentence. */
int launcher_node(const char *text, uint32_t nodes, uint32_t real, uint32_t *ret, struct err *err);

/* What the constructor took this process for. */
enum launcher_source launcher_source(void);
/* What the constructor found wrong: told at the first NCCL call. Return: 0 or -EINVAL. */
int launcher_problem(struct err *err);
/* What the constructor changed that the user had set: for the run's summary; NULL: nothing. */
const char *launcher_note(void);
