/* See fabric.h: what measurements say beyond the links. */
#include <math.h>

#include "fabric/fabric.h"

double fabric_residual(const struct fabric *f, enum coll_kind kind, double bytes)
{
	const struct fabric_residual *low = NULL, *high = NULL;

	for (size_t i = 0; i < f->n_residuals && !high; i++) {
		const struct fabric_residual *one = &f->residuals[i];

		if (one->kind != (uint32_t)kind)
			continue;
		if (one->bytes >= bytes)
			high = one;
		else
			low = one;
	}
	if (!low || !high)
		return low ? low->factor : high ? high->factor : 1;
	return low->factor * pow(high->factor / low->factor,
				 log(bytes / low->bytes) / log(high->bytes / low->bytes));
}
