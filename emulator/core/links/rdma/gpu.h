/* Inside links/rdma: memory of a GPU, registered; see gpu.c. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "links/link.h"
#include "links/rdma/verbs.h"

struct rdma_gpu {
	const struct link_gpu *from; /* borrowed; NULL: none */
	struct link_gpu_memory mem;
	struct ibv_mr *mr; /* NULL: no memory yet */
};

/* Allocates @bytes of @g->from and registers them for @access. Return: 0; negative errno with the
 * sentence of all attempts. */
int rdma_gpu_get(struct rdma_gpu *g, const struct verbs *v, struct ibv_pd *pd, uint64_t bytes,
		 int access, struct err *err);
void rdma_gpu_put(struct rdma_gpu *g, const struct verbs *v);
