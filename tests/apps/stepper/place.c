/* See place.h. rank = tp + TP x (dp + DP x pp). */
#include "stepper/place.h"

#include "members/color.h"

static bool any_layer_has(const struct job *job, enum group group)
{
	for (size_t i = 0; i < job->n_layers; i++)
		if (group == GROUP_TENSOR ? job->layers[i].tp_bytes : job->layers[i].moe_bytes)
			return true;
	return false;
}

/* The group of ranks that differ from @rank in this digit alone: @n values, each worth @stride. */
static void set(struct place *p, uint32_t rank, enum group group, uint32_t n, uint32_t stride,
		bool is_used)
{
	uint32_t index = rank / stride % n;

	p->groups[group].n = n;
	p->groups[group].index = index;
	p->groups[group].first = rank - index * stride;
	p->groups[group].stride = stride;
	p->groups[group].is_used = is_used && n > 1;
}

void place_find(const struct job *job, uint32_t rank, struct place *ret)
{
	uint32_t shard = job->shard ? job->shard : job->dp, tp = job->tp;
	bool is_eager = job->schedule == JOB_EAGER;

	*ret = (struct place){.stage = rank / tp / job->dp};
	set(ret, rank, GROUP_DATA, job->dp, tp, job->style == JOB_DDP);
	set(ret, rank, GROUP_SHARD, shard, tp, job->style != JOB_DDP);
	set(ret, rank, GROUP_REPLICA, job->dp / shard, tp * shard, job->style == JOB_HSDP);
	set(ret, rank, GROUP_TENSOR, tp, 1, any_layer_has(job, GROUP_TENSOR));
	set(ret, rank, GROUP_EXPERT, job->dp, tp, any_layer_has(job, GROUP_EXPERT));
	set(ret, rank, GROUP_PIPE, job->pp, tp * job->dp, true);
	set(ret, rank, GROUP_PIPE_ODD, job->pp, tp * job->dp, is_eager && job->pp > 2);
	set(ret, rank, GROUP_BACK, job->pp, tp * job->dp, is_eager);
	set(ret, rank, GROUP_BACK_ODD, job->pp, tp * job->dp, is_eager && job->pp > 2);
}

int32_t place_color(const struct place *place, enum group group)
{
	struct color_hash hash = COLOR_HASH_INIT;

	for (uint32_t i = 0; i < place->groups[group].n; i++)
		color_hash_add(&hash, place->groups[group].first + i * place->groups[group].stride);
	return color_of_tuple(&hash);
}
