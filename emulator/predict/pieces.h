/* What a rank's GPU did, in pieces, where the trace does not know its host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct piece {
	double start, end;
	uint32_t op, stream;
	bool is_exchange;
};

/* In the order of their starts. Computation is cut where an exchange starts beside it: what comes
 * before is all that this one waits for. @list: @n of them, with room for @capacity. Return: how
 * many there are. */
uint32_t pieces_cut(struct piece *list, uint32_t n, uint32_t capacity);
