/* Kernels of a Kineto trace: the Chrome trace (JSON) that torch.profiler's export_chrome_trace()
 * writes. The file is read event by event, so that only its kernels and products of matrices cost
 * memory. It is somebody else's: names and launches are bounded. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

#define LAUNCH_MAX_US (60e6 - 1) /* below a minute, also when it is rounded */

struct launch {
	const char *name; /* borrowed from names */
	double us;
	double op; /* "External id": the operator that launched it; negative: not said */
};

struct launches {
	struct launch *list; /* owned; without NCCL's */
	size_t n, capacity;
	json_t *names;    /* owned: the launches' names are its keys */
	json_t *products; /* owned: operator -> what its product of matrices is called
			     (kernels/rule.h) */
	size_t n_nccl;    /* launches of NCCL's kernels */
	size_t n_unsized; /* operators that multiply matrices, without sizes */
};

/* @file: its name, for sentences. Return: 0, *ret is the caller's; -EINVAL it is no such trace;
 * -EFBIG; -EIO; -ENOMEM; each with the sentence. */
int launches_read(FILE *f, const char *file, struct launches *ret, struct err *err);
void launches_deinit(struct launches *l);
