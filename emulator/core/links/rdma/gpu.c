/* See gpu.h. The RDMA device reads and writes this memory by itself. The owner of the link
 * allocates it (link.h); this file registers it: as the dma-buf that the GPU's driver gives,
 * where driver, kernel and libibverbs can; else by its address, which the kernel module nvidia-
 * peermem serves. It stays registered until the link is freed. The CPU never looks at its bytes. */
#include "links/rdma/gpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

/* Return: NULL with the sentence of why not. */
static struct ibv_mr *by_dmabuf(const struct verbs *v, struct ibv_pd *pd,
				const struct link_gpu_memory *m, int access, struct err *err)
{
	struct ibv_mr *mr;

	if (m->dmabuf_fd < 0) {
		err_set(err, ENOTSUP, "its driver gives none");
		return NULL;
	}
	if (!v->reg_dmabuf_mr) {
		err_set(err, ENOTSUP, "libibverbs is older than rdma-core 34");
		return NULL;
	}
	mr = v->reg_dmabuf_mr(pd, 0, m->bytes, (uintptr_t)m->base, m->dmabuf_fd, access);
	if (!mr)
		err_set(err, errno, "%s", strerror(errno));
	return mr;
}

static int reg(struct rdma_gpu *g, const struct verbs *v, struct ibv_pd *pd, int access,
	       struct err *err)
{
	struct err why;
	char bytes[32];
	int code;

	g->mr = by_dmabuf(v, pd, &g->mem, access, &why);
	if (!g->mr)
		g->mr = v->reg_mr(pd, g->mem.base, g->mem.bytes, access);
	code = errno;
	if (g->mr)
		return 0;
	units_print_bytes(g->mem.bytes, bytes, sizeof(bytes));
	return err_set(
		err, code,
		"%s of the GPU cannot be registered: as a dma-buf: %.120s; by address: %s (that "
		"needs the kernel module nvidia-peermem)",
		bytes, why.text, strerror(code));
}

int rdma_gpu_get(struct rdma_gpu *g, const struct verbs *v, struct ibv_pd *pd, uint64_t bytes,
		 int access, struct err *err)
{
	int r = g->from->alloc(bytes, &g->mem, err);

	if (r)
		return r;
	r = reg(g, v, pd, access, err);
	if (g->mem.dmabuf_fd >= 0)
		close(g->mem.dmabuf_fd); /* the registration keeps the memory */
	g->mem.dmabuf_fd = -1;
	if (r)
		g->from->free(&g->mem);
	return r;
}

void rdma_gpu_put(struct rdma_gpu *g, const struct verbs *v)
{
	if (!g->mr)
		return;
	v->dereg_mr(g->mr);
	g->mr = NULL;
	g->from->free(&g->mem);
}
