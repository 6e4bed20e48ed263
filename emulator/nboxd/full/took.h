/* What NCCL took for the job's collectives, as its profiler tells with each of them: algorithm,
 * protocol and channels, counted by kind for the summary. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TOOK_MAX 64 /* different ones; of further ones nothing is said */

struct took {
	struct took_count {
		uint32_t kind, algorithm, protocol, n_channels;
		uint64_t n;
	} counts[TOOK_MAX];
	uint32_t n;
};

void took_add(struct took *t, uint32_t kind, uint32_t algorithm, uint32_t protocol,
	      uint32_t n_channels);
/* "AllReduce ring Simple, 2 channels (12 ops); Broadcast ring LL, 1 channel (1 op)", the most
 * frequent first; "": there were none. Return: @buf. */
char *took_print(const struct took *t, char *buf, size_t size);
