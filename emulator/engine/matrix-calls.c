/* See matrix-calls.h. */
#include "engine/matrix-calls.h"

#include <errno.h>
#include <stdlib.h>

void matrix_calls_deinit(struct matrix_calls *c)
{
	free(c->ranks);
	free(c->n_by_rank);
	free(c->by_rank);
	free(c->calls);
}

int matrix_calls_init(struct matrix_calls *ret, const uint64_t *bytes, uint32_t n)
{
	*ret = (struct matrix_calls){.n = n,
				     .ranks = calloc(n, sizeof(*ret->ranks)),
				     .n_by_rank = calloc(n, sizeof(*ret->n_by_rank)),
				     .by_rank = calloc(n, sizeof(*ret->by_rank)),
				     .calls = calloc(2 * (size_t)n * n, sizeof(*ret->calls))};
	if (!ret->ranks || !ret->n_by_rank || !ret->by_rank || !ret->calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct sched_p2p *to = &ret->calls[2 * (size_t)i * n];

		ret->ranks[i] = i;
		ret->by_rank[i] = to;
		ret->n_by_rank[i] = 2 * (n - 1);
		for (uint32_t step = 1; step < n; step++) {
			uint32_t peer = (i + step) % n;

			*to++ = (struct sched_p2p){.peer = peer,
						   .is_send = true,
						   .bytes = bytes[(size_t)i * n + peer]};
			*to++ = (struct sched_p2p){.peer = peer,
						   .bytes = bytes[(size_t)peer * n + i]};
		}
	}
	return 0;
}
