/* See payload.h. */
#include "nboxd/op/payload.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFER_MIN (UINT64_C(256) << 20) /* of address space: larger than all caches */
#define ALIGN UINT64_C(64)

static void *map(uint64_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

void payload_need(struct payload *p, uint64_t footprint)
{
	if (footprint > p->bytes)
		footprint = p->bytes;
	if (footprint <= p->touched)
		return;
	memset(p->fill + p->touched, 1, footprint - p->touched);
	p->touched = footprint;
}

int payload_map(struct payload *p, uint64_t max_message_bytes)
{
	if (p->fill)
		return 0;
	p->max_message = max_message_bytes;
	p->bytes = 2 * max_message_bytes > BUFFER_MIN ? 2 * max_message_bytes : BUFFER_MIN;
	p->bytes = (p->bytes + 4095) / 4096 * 4096;
	p->fill = map(p->bytes, MAP_NORESERVE);
	p->scratch = map(p->bytes, MAP_NORESERVE);
	p->slots = map(PAYLOAD_SLOTS * max_message_bytes, MAP_NORESERVE);
	if (!p->fill || !p->scratch || !p->slots) {
		payload_unmap(p);
		return -ENOMEM;
	}
	return 0;
}

void payload_unmap(struct payload *p)
{
	if (p->fill)
		munmap(p->fill, p->bytes);
	if (p->scratch)
		munmap(p->scratch, p->bytes);
	if (p->slots)
		munmap(p->slots, PAYLOAD_SLOTS * p->max_message);
	*p = (struct payload){0};
}

static uint64_t place(const struct payload *p, uint64_t index, uint64_t bytes, uint64_t footprint)
{
	uint64_t step = (bytes + ALIGN - 1) / ALIGN * ALIGN, n;

	if (step == 0)
		return 0;
	n = (footprint < p->bytes ? footprint : p->bytes) / step;
	return n ? index % n * step : 0;
}

const void *payload_source(const struct payload *p, uint64_t index, uint64_t bytes,
			   uint64_t footprint)
{
	return p->fill + place(p, index, bytes, footprint);
}

void *payload_sink(const struct payload *p, uint64_t index, uint64_t bytes, uint64_t footprint)
{
	return p->scratch + place(p, index, bytes, footprint);
}

void *payload_slot(const struct payload *p, uint64_t index)
{
	return p->slots + index % PAYLOAD_SLOTS * (p->max_message / ALIGN * ALIGN);
}

typedef uint32_t lanes __attribute__((vector_size(32), may_alias));

/* Integers: the same traffic as floats, but no denormals from arbitrary bytes. What does not fill
 * the lanes is left out. */
void payload_reduce(const struct payload *p, void *to, uint64_t index, uint64_t bytes,
		    uint64_t footprint)
{
	const lanes *own = payload_source(p, index, bytes, footprint);
	const lanes *received = payload_slot(p, index);
	lanes *sum = to;

	for (uint64_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] = received[i] + own[i];
}

void payload_copy(const struct payload *p, uint64_t index, uint64_t bytes, uint64_t footprint)
{
	memcpy(payload_sink(p, index, bytes, footprint), payload_source(p, index, bytes, footprint),
	       bytes);
}
