/* What the room above sets and hears of a served bootstrap. */
#pragma once

#include "bootstrap/bootstrap.h"

struct bootstrap_serve_limits {
	/* At once; never more than half of the process's descriptors (RLIMIT_NOFILE). */
	unsigned n_connections;
	uint64_t silence_ns; /* how long one may take to say its magic, or to be opened */
};

/* What the room above wants to hear; as in struct bootstrap_sink, and like that may not call
 * bootstrap.h. All but failed are NULL-able. */
struct bootstrap_told {
	void (*failed)(void *ctx, struct bootstrap_comm *comm, const char *sentence);
	int (*votes)(void *ctx, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		     struct err *err);
	void (*child)(void *ctx, struct bootstrap_comm *parent, struct bootstrap_comm *child);
	void (*record)(void *ctx, struct bootstrap_comm *comm, const char *what, uint32_t rank,
		       const uint8_t *record, size_t bytes);
	/* A connection was refused: who, why. */
	void (*refused)(void *ctx, const char *sentence);
};
