/* See color.h. */
#include "members/color.h"

static uint64_t absolute(uint64_t x)
{
	return x >> 63 ? -x : x;
}

int32_t color_of_tuple(const struct color_hash *h)
{
	uint64_t x = h->tuple + (h->n ^ (UINT64_C(2870177450012600261) ^ UINT64_C(3527539)));

	if (x == UINT64_MAX)
		x = UINT64_C(1546275796); /* -1 means an error to Python */
	return (int32_t)(absolute(x) & INT32_MAX);
}

int32_t color_of_fold(const struct color_hash *h)
{
	return (int32_t)(absolute(h->fold) % INT32_MAX);
}
