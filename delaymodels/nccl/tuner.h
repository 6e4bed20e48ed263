/* The table of NCCL's example tuner plug-in: which algorithm, protocol and channels an op gets. */
#ifndef NCCL_TUNER_H
#define NCCL_TUNER_H

#include "nbox-delaymodel.h"

struct tuner_rule {
	uint32_t kind, algo, proto; /* enum nbox_op_kind, enum algo, enum nbox_proto */
	uint64_t min_bytes, max_bytes;
	int64_t n_channels, n_nodes, n_ranks; /* -1: NCCL's own, any, any */
};

struct tuner {
	struct tuner_rule *rules; /* owned, in order */
	size_t n;
};

/* @path NULL: no rules. Return: 0; -1 with the sentence. */
int tuner_read(const struct nbox_host *host, const char *path, struct tuner *ret);
/* @name: of the text, for sentences. Return: 0; -1 with the sentence. */
int tuner_parse(const struct nbox_host *host, const char *name, const char *text, size_t n,
		struct tuner *ret);
void tuner_deinit(struct tuner *t);
/* The first that matches; NULL: none. @bytes: the larger of a rank's buffers. */
const struct tuner_rule *tuner_find(const struct tuner *t, uint32_t kind, uint64_t bytes,
				    uint32_t n_nodes, uint32_t n_ranks);

#endif
