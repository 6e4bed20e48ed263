/* What lies in a receive buffer of NCCL when a message has come: with the protocols LL and LL128
 * each line has a flag, the connection's step + 1, for which the kernel waits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/plugin.h"

/* Eight bytes of the element that changes no result of @redop, over and over; 0 for kinds that do
 * not reduce. Numbers as in schedule/coll.h; a @redop that a user made is a sum. */
uint64_t fill_identity(uint32_t kind, uint32_t dtype, int redop);
/* @n bytes of it, from a multiple of 8. */
void fill_words(void *at, size_t n, uint64_t identity);
/* Lines of LL or LL128, as many as begin in @n bytes of @at, with the data of @from, which has
 * lines, too; NULL: with @identity. Data first: a kernel may read meanwhile. */
void fill_lines(void *at, size_t n, const void *from, uint64_t identity, uint32_t protocol,
		uint64_t step);
/* Flags alone, where the data of LL128 are right already. */
void fill_flags(void *at, size_t n, uint64_t step);
