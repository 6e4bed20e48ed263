#include "pipe/job.h"

#include <errno.h>
#include <stdbool.h>

static bool is_time(double ns)
{
	return ns >= 0 && ns <= PIPE_MAX_NS;
}

int pipe_check(const struct pipe_job *job, struct err *err)
{
	if (job->n_stages < 1 || job->n_stages > PIPE_MAX_STAGES)
		return err_set(err, EINVAL, "%u stages: it takes 1 to %d", job->n_stages,
			       PIPE_MAX_STAGES);
	if (job->n_micro < 1 || (uint64_t)job->n_stages * job->n_micro > PIPE_MAX_PASSES)
		return err_set(err, EINVAL,
			       "%u micro-batches of %u stages: it takes 1 to %d of both together",
			       job->n_micro, job->n_stages, PIPE_MAX_PASSES);
	for (uint32_t i = 0; i < job->n_stages; i++) {
		const struct pipe_stage *s = &job->stages[i];

		if (!is_time(s->forward_ns) || !is_time(s->backward_ns) ||
		    !is_time(s->to_next_ns) || !is_time(s->to_previous_ns))
			return err_set(err, EINVAL,
				       "stage %u: a pass or a message takes more than 115 days", i);
		if (!is_time(s->weights_ns) || s->weights_ns > s->backward_ns)
			return err_set(
				err, EINVAL,
				"stage %u: gradients of weights take longer than the backward "
				"pass, which they are a part of",
				i);
	}
	if (job->schedule == PIPE_EAGER && job->overlap == PIPE_BOTH)
		return err_set(
			err, EINVAL,
			"an eager schedule whose messages block both stages never ends: a stage "
			"sends before its neighbour can receive");
	return 0;
}

uint32_t pipe_peak(const struct pipe_job *job, uint32_t stage)
{
	uint32_t behind = job->n_stages - stage, peak = job->n_micro;

	if (job->schedule == PIPE_1F1B)
		peak = behind;
	else if (job->schedule == PIPE_EAGER)
		peak = 2 * behind - 1;
	return peak < job->n_micro ? peak : job->n_micro;
}

struct pipe_pass pipe_pass_at(const struct pipe_job *job, uint32_t peak, uint32_t i)
{
	uint32_t turns = job->n_micro - peak, k = i - peak;

	if (i < peak)
		return (struct pipe_pass){PIPE_FORWARD, i};
	if (k >= 2 * turns)
		return (struct pipe_pass){PIPE_BACKWARD, k - turns};
	return k % 2 ? (struct pipe_pass){PIPE_FORWARD, peak + k / 2}
		     : (struct pipe_pass){PIPE_BACKWARD, k / 2};
}

double pipe_delayed(const struct pipe_job *job, uint32_t stage)
{
	const struct pipe_stage *s = &job->stages[stage];
	double piece = job->pieces ? s->weights_ns / job->pieces : 0, delayed = 0;

	if (stage == 0 || piece <= 0)
		return 0;
	for (uint32_t i = 1; i <= job->pieces && delayed < s->to_previous_ns; i++)
		delayed = s->weights_ns * i / job->pieces;
	return delayed;
}
