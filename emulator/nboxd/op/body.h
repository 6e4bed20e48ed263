/* Where the bytes of a collective's messages lie at their virtual receiver. */
#pragma once

#include "nboxd/op/payload.h"
#include "op/call.h"

/* Where it puts message @index, of @bytes, of out-connection @out. */
void *body_sink(const struct call *call, const struct payload *p, uint32_t out, uint64_t index,
		uint64_t bytes);
/* Where that lies when it is passed on: summed up, if it is reduced. */
void *body_result(const struct call *call, const struct payload *p, uint32_t out, uint64_t index,
		  uint64_t bytes);
