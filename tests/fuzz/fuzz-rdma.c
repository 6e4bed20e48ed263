/* The private data of rdma connections, from strangers: hellos and refusals. */
#include "fuzz.h"

#include <assert.h>

#include "links/rdma/hello.h"
#include "links/rdma/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rdma_options o;
	struct rdma_hello h;
	struct err err = {""};
	char text[64];
	size_t half;
	int r;

	r = rdma_hello_check(data, size, &h, &err);
	if (r)
		assert(r < 0 && err.text[0]);
	else
		/* what the link relies on */
		assert(h.n_qps >= 1 && h.n_qps <= RDMA_QPS_MAX && h.window >= RDMA_WINDOW_MIN &&
		       !(h.window & (h.window - 1)) && !(h.ring_bytes & (h.ring_bytes - 1)) &&
		       h.ring_bytes >= RDMA_RING_MIN && h.slot_bytes >= RDMA_SLOT_MIN &&
		       h.ring_addr + h.ring_bytes > h.ring_addr);
	assert(rdma_refuse_text(data, size)[0]);
	if (size >= sizeof(text))
		return 0;
	/* "NAME=VALUE" */
	memcpy(text, data, size);
	text[size] = '\0';
	half = strcspn(text, "=");
	if (half == strlen(text))
		return 0;
	text[half] = '\0';
	rdma_options_init(&o);
	r = rdma_options_set(&o, text, text + half + 1, &err);
	assert(r <= 0 && (r == 0 || err.text[0]));
	assert(o.qps >= 1 && o.qps <= RDMA_QPS_MAX && !(o.ring_bytes & (o.ring_bytes - 1)));
	return 0;
}
