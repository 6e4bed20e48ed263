/* The ranks that a what-if names: "rank=17", "rank=16-23", "rank=1+5", or "node=2", which stands
 * for all ranks of that node ("node=2-3+7"). The one rule for all what-ifs, plug-ins
 * (engine/delay-host.c) and `fail` (config/failure.c). */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "topology/topology.h"

/* @rank, @node: what the user gave, or NULL; both are an error, without either *ret_n is 0.
 * *ret_ranks: sorted, each once, the caller's to free().
 * Return: 0; -EINVAL, -ERANGE (outside the world) or -ENOMEM with the sentence. */
int named_ranks(const struct topology *t, const char *rank, const char *node, uint32_t **ret_ranks,
		size_t *ret_n, struct err *err);
