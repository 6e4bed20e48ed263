/* From an op's start to its end at a rank, which may move meanwhile. Wall time. */
#pragma once

#include <stdint.h>

struct span {
	uint64_t start_ns, end_ns; /* as first told */
	/* at_ns of that time is now_ns; its end is until_ns */
	uint64_t at_ns, now_ns, until_ns;
};

void span_init(struct span *s, uint64_t start_ns, uint64_t end_ns);
void span_move(struct span *s, uint64_t now_ns, uint64_t end_ns);
/* When message @index of @n is due: (index + 1) / n of the way, never earlier. */
uint64_t span_due(const struct span *s, uint64_t index, uint64_t n);
