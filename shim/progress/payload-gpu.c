/* See payload-gpu.h. */
#include "shim/progress/payload-gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "links/endpoint.h"
#include "shim/gate/device-choose.h"
#include "shim/job/env.h"

#define FILL_BYTES (UINT64_C(4) << 20) /* as large as the buffer of one of NCCL's channels */
#define N_AREAS 4 /* the fill; the ring, and once more for each address tried in vain */

static struct {
	int ordinal;
	bool is_known, is_used;
	uint64_t bytes; /* that the link has */
	char decided[400];
	struct device_shared areas[N_AREAS]; /* base NULL: free */
} g = {.ordinal = DEVICE_NONE};

void payload_gpu_is(int ordinal)
{
	if (!g.is_known)
		g.ordinal = ordinal;
	g.is_known = true;
}

bool payload_gpu_is_used(void)
{
	return g.is_used;
}

static int alloc(uint64_t bytes, struct link_gpu_memory *ret, struct err *err)
{
	const struct device *dev = device_chosen();
	struct device_shared *a = g.areas;
	int r;

	while (a < g.areas + N_AREAS && a->base)
		a++;
	if (a == g.areas + N_AREAS)
		return err_set(err, ENOMEM, "no place to note memory of the GPU in");
	r = dev->alloc_shared(g.ordinal, bytes, LINK_GPU_ALIGN, a);
	if (r)
		return err_set(err, -r, "%s", dev->why());
	g.bytes += bytes;
	*ret = (struct link_gpu_memory){.base = a->base,
					.bytes = bytes,
					.dmabuf_fd = a->dmabuf_fd,
					.cookie = a};
	return 0;
}

static void give_back(const struct link_gpu_memory *m)
{
	struct device_shared *a = m->cookie;

	if (g.is_used) /* see the header: it stays */
		return;
	g.bytes -= m->bytes;
	device_chosen()->free_shared(a);
	memset(a, 0, sizeof(*a));
}

static const struct link_gpu gpu = {.alloc = alloc, .free = give_back};

static int try(struct link *l, const char *addr, int timeout_ms, const struct link_events *ev,
	       void *owner, struct link **ret_back, struct err *err)
{
	const struct device *dev = device_chosen();
	struct link *back = NULL;
	int r;

	if (!link_reaches_gpus(l))
		return err_set(err, ENOTSUP,
			       "the link is %s, which has no device that reaches a GPU (rdma has)",
			       link_kind(l));
	if (!dev || !dev->alloc_shared)
		return err_set(err, ENOTSUP,
			       "this process has no GPU that libnbox knows (device %s)",
			       dev ? dev->name : "none");
	if (g.ordinal == DEVICE_NONE)
		return err_set(err, ENODEV,
			       "no device was current when the first communicator was made: call "
			       "cudaSetDevice before");
	r = link_connect_gpu(addr, timeout_ms, &gpu, ev, owner, &back, err);
	if (r)
		return r;
	r = link_lend_gpu(l, &gpu, FILL_BYTES, err);
	if (r) {
		link_free(back);
		return r;
	}
	*ret_back = back;
	return 0;
}

int payload_gpu_open(struct link *l, const char *addr, int timeout_ms, const struct link_events *ev,
		     void *owner, struct link **ret_back, struct err *err)
{
	struct err why = {""};
	int r;

	if (env_get()->payload_memory == PAYLOAD_HOST) {
		if (link_reaches_gpus(l))
			snprintf(g.decided, sizeof(g.decided), "host (NBOX_PAYLOAD_MEMORY)");
		return 0;
	}
	r = try(l, addr, timeout_ms, ev, owner, ret_back, &why);
	if (!r) {
		g.is_used = true;
		log_info("payload: bodies lie in memory of GPU %d", g.ordinal);
		snprintf(g.decided, sizeof(g.decided),
			 "device (%g MiB of the GPU registered, each worker)",
			 (double)g.bytes / (1 << 20));
		return 0;
	}
	if (env_get()->payload_memory == PAYLOAD_DEVICE)
		return err_set(err, -r,
			       "NBOX_PAYLOAD_MEMORY=device: %.400s; auto would use the host's",
			       why.text);
	log_info("payload: bodies lie in memory of the host: %s", why.text);
	if (link_reaches_gpus(l))
		snprintf(g.decided, sizeof(g.decided), "host (%.380s)", why.text);
	return 0;
}

const char *payload_gpu_decided(void)
{
	return g.decided;
}
