/* See hello.h. Touches nothing but the bytes it is given. */
#include "links/rdma/hello.h"

#include <errno.h>
#include <string.h>

static int check_memory(const struct rdma_hello *h, struct err *err)
{
	uint32_t ring = h->ring_bytes;

	if (ring < RDMA_RING_MIN || ring > RDMA_RING_MAX || (ring & (ring - 1)))
		return err_set(err, EPROTO, "a ring of %u bytes", ring);
	if (h->ring_addr > UINT64_MAX - ring)
		return err_set(err, EPROTO, "a ring beyond the end of memory");
	if (h->window < RDMA_WINDOW_MIN || h->window > RDMA_WINDOW_MAX ||
	    (h->window & (h->window - 1)))
		return err_set(err, EPROTO, "a window of %u pieces", h->window);
	if (h->slot_bytes < RDMA_SLOT_MIN)
		return err_set(err, EPROTO, "slots of %u bytes", h->slot_bytes);
	return 0;
}

int rdma_hello_check(const void *data, size_t n, struct rdma_hello *ret, struct err *err)
{
	struct rdma_hello h;
	int r;

	if (!data || n < sizeof(h))
		return err_set(err, EPROTO, "%zu bytes of connection data are no hello of nbox", n);
	memcpy(&h, data, sizeof(h));
	if (h.magic != RDMA_HELLO_MAGIC)
		return err_set(err, EPROTO, "the connection data is no hello of nbox");
	if (h.version != RDMA_HELLO_VERSION)
		return err_set(err, EPROTONOSUPPORT,
			       "the other end speaks version %u of the rdma link, this one %d: use "
			       "nboxd and libnbox.so of one release",
			       h.version, RDMA_HELLO_VERSION);
	if (h.flags & ~(RDMA_HELLO_RING_BLIND | RDMA_HELLO_READS))
		return err_set(err, EPROTO, "a hello with unknown flags 0x%x", h.flags);
	if (h.n_qps < 1 || h.n_qps > RDMA_QPS_MAX)
		return err_set(err, EPROTO, "a hello with %u queue pairs (1 to %d)", h.n_qps,
			       RDMA_QPS_MAX);
	if (h.kind)
		return err_set(err, EPROTO, "a hello of unknown kind %u", h.kind);
	r = check_memory(&h, err);
	if (r)
		return err_prefix(err, r, "a hello that cannot be");
	*ret = h;
	return 0;
}

const char *rdma_refuse_text(const void *data, size_t n)
{
	static const char *const texts[RDMA_REFUSALS] = {
		[RDMA_REFUSED_GARBAGE] = "it took our hello for garbage",
		[RDMA_REFUSED_VERSION] =
			"it speaks another version of the rdma link: use nboxd and "
			"libnbox.so of one release",
		[RDMA_REFUSED_RESOURCES] =
			"it has no resources for another link; its log says which",
	};
	struct rdma_refuse r;

	if (!data || n < sizeof(r))
		return "whoever listens there is not nboxd";
	memcpy(&r, data, sizeof(r));
	if (r.magic != RDMA_HELLO_MAGIC || r.reason >= RDMA_REFUSALS || !texts[r.reason])
		return "whoever listens there is not nboxd";
	return texts[r.reason];
}
