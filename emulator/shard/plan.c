#include "shard/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "predict/predict.h"

void shard_plan_deinit(struct shard_plan *p)
{
	free(p->gpus);
	free(p->matrix);
}

int shard_plan_make(const struct shard_job *job, const uint32_t *gpu_of, struct shard_plan *ret)
{
	uint32_t n = job->n_gpus;
	struct shard_plan p = {.gpus = calloc(n, sizeof(*p.gpus)),
			       .matrix = calloc((size_t)n * n, sizeof(*p.matrix))};
	CLEANUP(freep) struct lookup_bytes *sums = calloc(2 * (size_t)n, sizeof(*sums));
	CLEANUP(freep) double *pair = calloc(n, sizeof(*pair));

	if (!p.gpus || !p.matrix || !sums || !pair) {
		shard_plan_deinit(&p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < job->n_tables; i++) {
		const struct shard_table *t = &job->tables[i];

		p.gpus[gpu_of[i]].bytes += table_bytes(t);
		pair[gpu_of[i]] += 4 * t->width * job->batch / n;
		for (int back = 0; back < 2; back++) {
			struct lookup_bytes b = lookup_bytes(t, job->batch, &job->card, back);

			sums[2 * gpu_of[i] + (uint32_t)back].memory += b.memory;
			sums[2 * gpu_of[i] + (uint32_t)back].l2 += b.l2;
		}
	}
	for (uint32_t g = 0; g < n; g++) {
		p.gpus[g].forward_ns = lookup_ns(&sums[2 * g], &job->card);
		p.gpus[g].backward_ns = lookup_ns(&sums[2 * g + 1], &job->card);
		p.gpus[g].pair_bytes = (uint64_t)pair[g];
		for (uint32_t to = 0; to < n; to++)
			if (to != g)
				p.matrix[(size_t)g * n + to] = p.gpus[g].pair_bytes;
	}
	p.skew = skew_of(p.matrix, n);
	*ret = p;
	return 0;
}

enum { FORWARD, EXCHANGE, DENSE, BACK, BACKWARD, OPS };

int shard_plan_ns(const struct shard_job *job, const struct shard_plan *p, double alltoall_ns,
		  double *ret_ns)
{
	static const struct predict_host nothing;
	uint32_t n = job->n_gpus, none;
	CLEANUP(freep) struct predict_rank *ranks = calloc(n, sizeof(*ranks));
	CLEANUP(freep) struct predict_op *ops = calloc(OPS * (size_t)n, sizeof(*ops));
	CLEANUP(freep) struct predict_kernel *kernels = calloc(OPS * (size_t)n, sizeof(*kernels));
	struct predict_task t = {.ranks = ranks,
				 .ops = ops,
				 .kernels = kernels,
				 .n_ranks = n,
				 .n_ops = OPS * n,
				 .n_kernels = OPS * n,
				 .n_joins = 2};
	struct predict played;
	int r;

	if (!ranks || !ops || !kernels)
		return -ENOMEM;
	for (uint32_t g = 0; g < n; g++) {
		const double ns[OPS] = {p->gpus[g].forward_ns, alltoall_ns, job->dense_ns,
					alltoall_ns, p->gpus[g].backward_ns};

		ranks[g] = (struct predict_rank){.first = OPS * g, .n = OPS};
		for (uint32_t i = 0; i < OPS; i++) {
			uint32_t at = OPS * g + i;
			bool is_exchange = i == EXCHANGE || i == BACK;

			kernels[at] = (struct predict_kernel){ns[i], 0,
							      is_exchange  ? PREDICT_COLLECTIVE
							      : i == DENSE ? PREDICT_COMPUTE
									   : PREDICT_LOOKUP,
							      false};
			ops[at] =
				(struct predict_op){.first = at,
						    .n = 1,
						    .join = is_exchange ? i == BACK : PREDICT_NONE,
						    .after = i == DENSE || i == BACKWARD
								     ? at - 1
								     : PREDICT_NONE,
						    .host = &nothing};
		}
	}
	r = predict_play(&t, PREDICT_EVENT, &played, &none);
	if (r < 0)
		return r;
	*ret_ns = played.ns;
	predict_deinit(&played);
	return 0;
}
