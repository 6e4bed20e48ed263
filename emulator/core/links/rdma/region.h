/* Inside links/rdma: the registration cache of a device; see region.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "links/rdma/verbs.h"

struct rdma_region {
	struct ibv_mr *mr;
	uintptr_t first, last; /* whole pages; last is one behind */
	uint32_t n_users;
	uint64_t used_at;
	bool is_own;      /* of rdma_region_own() */
	bool is_readable; /* by the peer's READ */
	struct rdma_region *next;
};

struct rdma_regions {
	const struct verbs *v;
	struct ibv_pd *pd;   /* borrowed */
	int access;          /* of the list: IBV_ACCESS_REMOTE_READ when a link's peer reads */
	uint64_t most_bytes; /* NBOX_IB_MEMORY */
	struct rdma_region *list, *own;
	uint64_t bytes, turn; /* bytes: of the list */
};

/* A region with the @n bytes at @p, until rdma_region_put(). Return: 0; negative errno with the
 * sentence. */
int rdma_region_get(struct rdma_regions *c, const void *p, size_t n, struct rdma_region **ret,
		    struct err *err);
/* A region of the caller's, which no rdma_region_get() finds, until it is put. Return: as there. */
int rdma_region_own(struct rdma_regions *c, const void *p, size_t n, struct rdma_region **ret,
		    struct err *err);
/* @is_kept: for the next time; else the last user drops it. */
void rdma_region_put(struct rdma_regions *c, struct rdma_region *g, bool is_kept);
void rdma_regions_free(struct rdma_regions *c);
/* What a failed registration means: -ENOMEM is nearly always `ulimit -l`. */
int rdma_memory_error(struct err *err, int code, size_t bytes);
