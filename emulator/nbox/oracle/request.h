/* What nbox oracle is asked for: the command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/options.h"
#include "nbox-oracle/lines.h"

#define ORACLE_WORLDS_MAX 64
#define ORACLE_SIZES_MAX 512

struct oracle_shape {
	uint32_t n_nodes, gpus_per_node; /* 0: not told; those of this node */
};

struct oracle_request {
	struct oracle_shape shapes[ORACLE_WORLDS_MAX];
	size_t n_shapes;
	bool ops[ORACLE_OPS];
	uint64_t min_bytes, max_bytes;
	double factor;
	uint64_t sizes[ORACLE_SIZES_MAX];
	size_t n_sizes;
	/* borrowed from the command line; NULL: not given */
	const char *nccl, *cudart, *topo, *out, *nccl_log;
	bool has_net, has_own_net, is_untried_allowed;
	uint64_t timeout_ns;
};

/* Return: 0; OPTION_NONE never; -EINVAL with the sentence. */
int oracle_request_take(int argc, char **argv, struct oracle_request *ret, struct err *err);
/* "16", "2,16x4": Return: 0; -EINVAL with the sentence. */
int oracle_shapes_parse(const char *text, struct oracle_shape *ret, size_t *ret_n, struct err *err);
