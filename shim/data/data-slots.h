/* Buffers with a slot for each rank of the communicator: where the slots are, and what those of
 * virtual ranks hold. */
#pragma once

#include "shim/data/call.h"

static inline char *slot_at(const void *base, uint64_t bytes, uint32_t rank)
{
	return (char *)(uintptr_t)base + bytes * rank;
}
/* Are the real members next to each other? Then their slots are one piece of a buffer. */
bool slots_are_contiguous(const struct comm *c);
/* Fills every virtual slot of a receive buffer: with its template's, or with small values. The real
 * slots are already in place (@from NULL), or in @from, in order. Return: 0; negative errno with
 * the sentence. */
int slots_replicate(const struct call *call, const char *from, device_stream s, struct err *err);
/* Small values of @call's type. Return: as above. */
int slots_fill(const struct call *call, void *at, uint64_t bytes, device_stream s, struct err *err);
