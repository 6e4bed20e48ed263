/* See body.h. */
#include "nboxd/op/body.h"

static bool has_bit(const struct call *call, const struct bitmap *map, uint32_t out, uint64_t index)
{
	return call->has_reduces && bitmap_test(map, call->border.out[out].first_bit + index);
}

void *body_sink(const struct call *call, const struct payload *p, uint32_t out, uint64_t index,
		uint64_t bytes)
{
	return has_bit(call, &call->reduces, out, index)
		       ? payload_slot(p, index)
		       : payload_sink(p, index, bytes, call->sched.bytes);
}

void *body_result(const struct call *call, const struct payload *p, uint32_t out, uint64_t index,
		  uint64_t bytes)
{
	return has_bit(call, &call->keeps, out, index)
		       ? payload_sink(p, index, bytes, call->sched.bytes)
		       : body_sink(call, p, out, index, bytes);
}
