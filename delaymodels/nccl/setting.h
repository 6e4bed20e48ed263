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
	/* By what it decides: "NCCL 2.28.9, the job's, NCCL_ALGO=Ring"; from @limits_at on what
	 * narrows it: ", NCCL_ALGO=Ring" */
	char source[400];
	size_t limits_at;  /* in @source */
	char unknown[256]; /* variables that NCCL may choose otherwise by; "": none */
};

/* Reads the model's parameters, and where one is not given, the environment. @told: the version of
 * a decision file's NCCL; NULL: there is none. Return: 0; -1 with the sentence. */
int setting_read(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		 const char *told, struct setting *ret);
/* Of the NCCL that the job has loaded; "": there is no job yet, or its NCCL is not known. */
const char *setting_job_version(const struct nbox_host *host);
/* The file of a tuner's table; NULL: none. Borrowed. */
const char *setting_tuner(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv);

#endif
