/* Memory of a GPU that the RDMA device reads and writes by itself. The owner allocates it
 * (link.h); here it is registered: as the dma-buf that the GPU's driver gives, where that,
 * the kernel and libibverbs can; else by its address, which is what the kernel module
 * nvidia-peermem serves. It stays registered until the link is freed, also while the link
 * is made again. Nobody here looks at its bytes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "links/rdma/private.h"

/* Return: NULL with the sentence of why not. */
static struct ibv_mr *by_dmabuf(struct rdma_link *r, const struct link_gpu_memory *m, int access,
				struct err *err)
{
	const struct verbs *v = r->hub->v;
	struct ibv_mr *mr;

	if (m->dmabuf_fd < 0) {
		err_set(err, ENOTSUP, "its driver gives none");
		return NULL;
	}
	if (!v->reg_dmabuf_mr) {
		err_set(err, ENOTSUP, "libibverbs is older than rdma-core 34");
		return NULL;
	}
	mr = v->reg_dmabuf_mr(r->dev->pd, 0, m->bytes, (uintptr_t)m->base, m->dmabuf_fd, access);
	if (!mr)
		err_set(err, errno, "%s", strerror(errno));
	return mr;
}

static int reg(struct rdma_link *r, struct rdma_gpu *g, int access, struct err *err)
{
	struct err why;
	char bytes[32];
	int code;

	g->mr = by_dmabuf(r, &g->mem, access, &why);
	if (!g->mr)
		g->mr = r->hub->v->reg_mr(r->dev->pd, g->mem.base, g->mem.bytes, access);
	code = errno;
	if (g->mr) {
		rdma_counts.made[RDMA_MRS]++;
		return 0;
	}
	units_print_bytes(g->mem.bytes, bytes, sizeof(bytes));
	return err_set(
		err, code,
		"%s of the GPU cannot be registered: as a dma-buf: %.120s; by address: %s (that "
		"needs the kernel module nvidia-peermem)",
		bytes, why.text, strerror(code));
}

int rdma_gpu_get(struct rdma_link *r, struct rdma_gpu *g, uint64_t bytes, int access,
		 struct err *err)
{
	int rc = g->from->alloc(bytes, &g->mem, err);

	if (rc)
		return rc;
	rc = reg(r, g, access, err);
	if (g->mem.dmabuf_fd >= 0)
		close(g->mem.dmabuf_fd); /* what is registered keeps the memory */
	g->mem.dmabuf_fd = -1;
	if (rc)
		g->from->free(&g->mem);
	return rc;
}

void rdma_gpu_put(struct rdma_link *r, struct rdma_gpu *g)
{
	if (!g->mr)
		return;
	r->hub->v->dereg_mr(g->mr);
	rdma_counts.gone[RDMA_MRS]++;
	g->mr = NULL;
	g->from->free(&g->mem);
}

int rdma_lend_gpu(struct link *l, const struct link_gpu *gpu, uint64_t bytes, struct err *err)
{
	struct rdma_link *r = rdma_of(l);
	int rc;

	if (!r->dev)
		return err_set(err, EPIPE, "the link is not connected");
	r->lent_gpu.from = gpu;
	rc = rdma_gpu_get(r, &r->lent_gpu, bytes, IBV_ACCESS_LOCAL_WRITE, err);
	if (!rc)
		l->lent_gpu = r->lent_gpu.mem.base;
	return rc;
}
