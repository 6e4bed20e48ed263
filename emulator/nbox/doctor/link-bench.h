/* How fast a link is: two processes of this machine, one that measures and one that
 * answers. For nbox doctor and for the benchmark of the links. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum link_bench_wait {
	LINK_BENCH_POLL,   /* both ends poll: a core each */
	LINK_BENCH_EVENTS, /* both sleep whenever there is nothing to do */
	LINK_BENCH_SPIN,   /* as workers and nboxd do: spin where waits have been short */
};

struct link_bench {
	const char *addr; /* to listen at, borrowed */
	enum link_bench_wait wait;
	uint64_t budget_bytes; /* moved for a row's bandwidth, when time allows */
	uint64_t most;         /* round trips, and messages of a batch */
	uint64_t limit_ns;     /* for each of a row's two measurements */
};

struct link_bench_row {
	uint64_t bytes;        /* at least 1 */
	double p50_us, p99_us; /* one way: half of a round trip */
	double gbytes_per_s;   /* 10^9 bytes of bodies, the median batch */
	double messages_per_s;
	uint64_t n_round_trips; /* that the percentiles are of */
};

/* Measures @rows[].bytes of each of @n rows and fills in the rest. Forks a child that
 * answers, and ends it; no wait is longer than 30 s. Received bodies are checked to be
 * what was sent. Return: 0; negative errno with a sentence, then the rows are
 * incomplete. */
int link_bench_run(const struct link_bench *b, struct link_bench_row *rows, size_t n,
		   struct err *err);
