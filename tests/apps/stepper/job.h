/* A training job as a short text describes it: its layers, and how they are spread over ranks.
 *
 *   parallel tp=2 pp=1 dp=4     # tp fastest, then dp, then pp; dp may be left out: what is left
 *   style ddp | fsdp | hsdp     # of the dp group
 *   bucket 25MiB                # ddp
 *   buckets 2,6                 # ddp: instead: so many gradients in each
 *   group 8                     # ddp: all-reduces of a bucket, in one group
 *   shard 4                     # hsdp: ranks of a sharding group
 *   micro 4                     # micro-batches an iteration
 *   schedule 1f1b | eager       # of the pipeline
 *   update 2ms
 *   layer x8 forward=2.5ms backward=5ms params=1MiB tp=512KiB moe=256KiB send=1MiB
 *
 * One statement a line; only layers repeat. README.md says what each means. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum job_style { JOB_DDP, JOB_FSDP, JOB_HSDP, JOB_STYLES };
enum job_schedule { JOB_1F1B, JOB_EAGER, JOB_SCHEDULES };

struct job_layer {
	double forward_ns, backward_ns;
	uint64_t params_bytes; /* gradients of one rank, before they are sharded */
	uint64_t tp_bytes, moe_bytes, send_bytes;
	unsigned line;
};

struct job {
	uint32_t tp, pp, dp; /* dp: 0 until job_fit(), where the text leaves it out */
	enum job_style style;
	uint64_t bucket_bytes;
	uint32_t *buckets; /* owned: gradients of each; NULL: bucket_bytes says it */
	size_t n_buckets;
	uint32_t group;
	uint32_t shard; /* 0: not given */
	uint32_t micro;
	enum job_schedule schedule;
	double update_ns;
	struct job_layer *layers; /* owned */
	size_t n_layers;
};

/* @name: for the sentences, "ddp.job:3: ...". Return: 0; -EINVAL, -ENOMEM with the sentence. */
int job_parse(const char *name, const char *text, struct job *ret, struct err *err);
/* Does the job fit @world ranks? Sets dp. Return: 0; -EINVAL with the sentence. */
int job_fit(struct job *job, uint32_t world, struct err *err);
void job_deinit(struct job *job);
