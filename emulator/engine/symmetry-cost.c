/* See symmetry-cost.h. */
#include "engine/symmetry-cost.h"

#include "base/cleanup.h"

int symmetry_cost(struct symmetry *y, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		  uint64_t bytes, struct nbox_delay *ret)
{
	uint32_t class = y->class_of(y->ctx, src, dst, lane), i;
	int r;

	for (i = 0; i < y->n_known; i++) {
		if (y->known[i].class == class && y->known[i].bytes == bytes) {
			*ret = y->known[i].d;
			return 0;
		}
	}
	r = y->cost->message(y->cost->ctx, src, dst, lane, index, bytes, ret);
	if (r == 0 && y->n_known < ARRAY_SIZE(y->known)) {
		y->known[y->n_known].class = class;
		y->known[y->n_known].bytes = bytes;
		y->known[y->n_known++].d = *ret;
	}
	return r;
}
