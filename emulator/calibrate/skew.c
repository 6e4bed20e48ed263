/* See skew.h. */
#include "calibrate/skew.h"

#include <stddef.h>

struct skew skew_of(const uint64_t *bytes, uint32_t n_ranks)
{
	struct skew skew = {.bytes = 0};
	double total = 0;

	for (uint32_t i = 0; i < n_ranks; i++) {
		uint64_t sent = 0, received = 0;

		for (uint32_t j = 0; j < n_ranks; j++) {
			if (j == i)
				continue;
			sent += bytes[(size_t)i * n_ranks + j];
			received += bytes[(size_t)j * n_ranks + i];
		}
		total += (double)sent;
		if (sent > skew.bytes || received > skew.bytes) {
			skew.rank = i;
			skew.is_receive = received > sent;
			skew.bytes = received > sent ? received : sent;
		}
	}
	skew.even = n_ranks ? total / n_ranks : 0;
	return skew;
}
