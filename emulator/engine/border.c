/* See border.h. How a border is made: border-maker.h. */
#include "engine/border.h"

#include <stdlib.h>
#include <string.h>

int border_conn_compare(const struct border_conn *c, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (c->src != src)
		return c->src < src ? -1 : 1;
	if (c->dst != dst)
		return c->dst < dst ? -1 : 1;
	return c->lane < lane ? -1 : c->lane > lane;
}

int64_t border_conns_find(const struct border_conn *conns, uint32_t n, uint32_t src, uint32_t dst,
			  uint16_t lane)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = border_conn_compare(&conns[mid], src, dst, lane);

		if (c == 0)
			return mid;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

int64_t border_find_in(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane)
{
	return border_conns_find(b->in, b->n_in, src, dst, lane);
}

int64_t border_find_out(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane)
{
	return border_conns_find(b->out, b->n_out, src, dst, lane);
}

uint64_t border_message_bytes(const struct border *b, const struct sched *s,
			      const struct border_conn *c, uint64_t index)
{
	uint64_t skip;

	if (b->p2p_chunk_bytes == 0)
		return sched_message_bytes(s, c->src, c->dst, c->lane, index);
	if (index >= c->n_messages)
		return 0;
	skip = index * b->p2p_chunk_bytes;
	return c->bytes - skip < b->p2p_chunk_bytes ? c->bytes - skip : b->p2p_chunk_bytes;
}

void border_deinit(struct border *b)
{
	free(b->in);
	free(b->out);
	free(b->dep_start);
	free(b->dep);
	memset(b, 0, sizeof(*b));
}
