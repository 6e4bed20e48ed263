/* Where the parts of nbox lie: beside the program in a build folder, or in
 * <prefix>/lib/nbox when it is installed. */
#pragma once

#include <limits.h>

#include "base/err.h"

struct paths {
	char nboxd[PATH_MAX];
	char shim[PATH_MAX];     /* libnbox.so */
	char models[PATH_MAX];   /* folder of the delay models */
	char standins[PATH_MAX]; /* folder of the stand-ins for CUDA and NCCL */
	char perf[PATH_MAX];     /* the program that nbox perf runs */
	char oracle[PATH_MAX],
		oracle_plugin[PATH_MAX]; /* what nbox oracle runs, and gives to NCCL */
};

enum {
	PATHS_MODELS = 1,
	PATHS_RUN = 2,
	PATHS_PERF = 4,
	PATHS_SHIM = 8,
	PATHS_HOST = 16,
	PATHS_ORACLE = 32
};

/* @needs: which must be there (PATHS_..., or'ed). Return: 0; -ENOENT with a sentence that names
 * what is missing and where it was looked for. */
int paths_find(struct paths *ret, unsigned int needs, struct err *err);
