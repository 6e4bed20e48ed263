/* See place.h. rank = tp + TP x (dp + DP x pp). */
#include "stepper/place.h"

static bool any_layer_has(const struct job *job, enum group group)
{
	for (size_t i = 0; i < job->n_layers; i++)
		if (group == GROUP_TENSOR ? job->layers[i].tp_bytes : job->layers[i].moe_bytes)
			return true;
	return false;
}

static void set(struct place *p, enum group group, uint32_t n, uint32_t index, uint32_t first,
		bool is_used)
{
	p->groups[group].n = n;
	p->groups[group].index = index;
	p->groups[group].first = first;
	p->groups[group].is_used = is_used && n > 1;
}

void place_find(const struct job *job, uint32_t rank, struct place *ret)
{
	uint32_t tp = rank % job->tp, dp = rank / job->tp % job->dp;
	uint32_t pp = rank / job->tp / job->dp;
	uint32_t shard = job->shard ? job->shard : job->dp;
	uint32_t line = tp + pp * job->tp * job->dp; /* the dp group's first */

	*ret = (struct place){.tp = tp, .dp = dp, .pp = pp};
	set(ret, GROUP_DATA, job->dp, dp, line, job->style == JOB_DDP);
	set(ret, GROUP_SHARD, shard, dp % shard, line + job->tp * (dp - dp % shard),
	    job->style != JOB_DDP);
	set(ret, GROUP_REPLICA, job->dp / shard, dp / shard, line + job->tp * (dp % shard),
	    job->style == JOB_HSDP);
	set(ret, GROUP_TENSOR, job->tp, tp, rank - tp, any_layer_has(job, GROUP_TENSOR));
	set(ret, GROUP_EXPERT, job->dp, dp, line, any_layer_has(job, GROUP_EXPERT));
	set(ret, GROUP_PIPE, job->pp, pp, tp + job->tp * dp, true);
}
