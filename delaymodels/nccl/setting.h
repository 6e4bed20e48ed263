/* What the user and the job's environment say to NCCL. */
#ifndef NCCL_SETTING_H
#define NCCL_SETTING_H

#include "nbox-delaymodel.h"
#include "words.h"

struct setting {
	const struct tables *tables;
	uint8_t algo[N_COSTED][N_ALGOS];     /* enum allowed */
	uint8_t proto[N_COSTED][N_PROTOS];   /* enum allowed; LL128: by NCCL's rule */
	uint32_t min_channels, max_channels; /* of rings and trees */
	uint32_t min_ctas, max_ctas;         /* of all algorithms */
	uint64_t buffer_bytes[N_PROTOS];
	uint64_t p2p_chunk_bytes;
	uint32_t n_threads, n_ll128_threads; /* 0: as NCCL picks */
	int64_t thresholds[2][N_PROTOS];     /* of tree and ring; negative: as NCCL picks */
	int has_nvls, has_pat;               /* enum allowed */
	/* By what it decides: "NCCL 2.28.9, the job's; NCCL_ALGO=Ring" */
	char source[400];
};

/* Reads the model's parameters, and where one is not given, the environment. Return: 0; -1 with the
 * sentence. */
int setting_read(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		 struct setting *ret);
/* The file of a tuner's table; NULL: none. Borrowed. */
const char *setting_tuner(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv);

#endif
