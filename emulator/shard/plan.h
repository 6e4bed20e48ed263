/* What a plan of sharding costs: each GPU's look-ups, the all-to-all between them, the iteration.
 *
 * An iteration: each GPU looks up the whole batch in its tables; an all-to-all gives each its part
 * of the batch; the dense layers, forward and backward; an all-to-all of the gradients; these go
 * into the tables. */
#pragma once

#include "calibrate/skew.h"
#include "shard/lookup.h"

struct shard_job {
	const struct shard_table *tables; /* borrowed */
	uint32_t n_tables, n_gpus;
	double batch;    /* samples of all GPUs */
	double dense_ns; /* of the layers on a GPU's part of the batch */
	struct lookup_card card;
};

struct shard_gpu {
	double bytes;                   /* of its tables */
	double forward_ns, backward_ns; /* its look-ups, and their gradients */
	uint64_t pair_bytes;            /* that it sends to each other one */
};

struct shard_plan {
	struct shard_gpu *gpus; /* owned, as all here */
	uint64_t *matrix;       /* of the all-to-all forward: [source * n_gpus + destination] */
	struct skew skew;
};

/* @gpu_of: of each table. Return: 0; -ENOMEM. */
int shard_plan_make(const struct shard_job *job, const uint32_t *gpu_of, struct shard_plan *ret);
void shard_plan_deinit(struct shard_plan *p);

/* The iteration by predict/predict.h, with an all-to-all of that long each way: nothing else
 * waits. Return: 0; -ENOMEM. */
int shard_plan_ns(const struct shard_job *job, const struct shard_plan *p, double alltoall_ns,
		  double *ret_ns);
