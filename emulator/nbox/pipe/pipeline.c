#include "nbox/pipe/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define MOST_SLOWER 1024.0

void pipeline_deinit(struct pipeline *p)
{
	free(p->stages);
	free(p->message_bytes);
	p->stages = NULL;
	p->message_bytes = NULL;
}

void pipeline_answer_deinit(struct pipeline_answer *a)
{
	for (size_t i = 0; i < a->n; i++)
		pipe_times_deinit(&a->rows[i].times);
	a->n = 0;
}

const char *pipeline_schedule(enum pipe_schedule schedule)
{
	static const char *const names[PIPE_SCHEDULES] = {"gpipe", "1f1b", "eager"};

	return names[schedule];
}

const char *pipeline_overlap(enum pipe_overlap overlap)
{
	static const char *const names[PIPE_OVERLAPS] = {"on", "sender", "off"};

	return names[overlap];
}

static struct pipe_job job_of(const struct pipeline *p, enum pipe_schedule schedule,
			      enum pipe_overlap overlap, bool is_delayed)
{
	return (struct pipe_job){
		.stages = p->stages,
		.n_stages = p->n_stages,
		.n_micro = p->n_micro,
		.schedule = schedule,
		.overlap = overlap,
		.pieces = is_delayed ? p->pieces : 0,
	};
}

static int add_row(struct pipeline_answer *a, const struct pipe_job *job, bool is_delayed,
		   struct err *err)
{
	struct pipeline_row row = {.job = *job, .is_delayed = is_delayed};
	int r = pipe_check(job, err);

	r = r == 0 ? pipe_play(job, &row.times) : r;
	if (r < 0)
		return r;
	a->rows[a->n++] = row;
	return pipe_signal(job, &a->rows[a->n - 1].signal_ns);
}

static bool has_weights(const struct pipeline *p)
{
	for (uint32_t i = 0; i < p->n_stages; i++)
		if (p->stages[i].weights_ns > 0)
			return true;
	return false;
}

/* The link that has least time for its bytes where messages take @slower times as long. */
static double bandwidth(const struct pipeline *p, double slower)
{
	double most = 0;

	for (uint32_t i = 0; i + 1 < p->n_stages; i++) {
		double ns =
			fmin(p->stages[i].to_next_ns, p->stages[i + 1].to_previous_ns) * slower -
			p->latency_ns;

		if (ns > 0)
			most = fmax(most, (double)p->message_bytes[i] / ns);
	}
	return most;
}

static int ask_network(const struct pipeline *p, struct pipeline_answer *a)
{
	struct pipe_job job = job_of(p, PIPE_EAGER, PIPE_NOBODY, false);
	bool has_messages = false;
	int r;

	for (uint32_t i = 0; i < p->n_stages; i++)
		has_messages |= (i + 1 < p->n_stages && p->stages[i].to_next_ns > 0) ||
				(i > 0 && p->stages[i].to_previous_ns > 0);
	if (!has_messages)
		return 0;
	r = pipe_slowest_messages(&job, PIPELINE_SHARE, MOST_SLOWER, &a->slower);
	if (r == 0 && a->slower > 0)
		a->least_bandwidth = bandwidth(p, a->slower);
	return r;
}

int pipeline_play(const struct pipeline *p, const struct pipeline_wanted *wanted,
		  struct pipeline_answer *ret, struct err *err)
{
	CLEANUP(pipeline_answer_deinit) struct pipeline_answer a = {.of = p};
	int r = 0;

	for (int o = PIPE_OVERLAPS; o-- > 0;) {
		for (int s = 0; s < PIPE_SCHEDULES; s++) {
			bool is_wanted = wanted->schedules & 1u << s && wanted->overlaps & 1u << o;
			struct pipe_job job =
				job_of(p, (enum pipe_schedule)s, (enum pipe_overlap)o, false);

			if (s == PIPE_EAGER && o == PIPE_BOTH &&
			    (wanted->schedules != 1u << s || wanted->overlaps != 1u << o))
				is_wanted = false; /* it cannot be; pipe_check() says why */
			if (is_wanted && r == 0)
				r = add_row(&a, &job, false, err);
			if (!is_wanted || r < 0 || o != PIPE_NOBODY || s == PIPE_GPIPE ||
			    !has_weights(p))
				continue;
			job.pieces = p->pieces;
			r = add_row(&a, &job, true, err);
		}
	}
	r = r == 0 ? ask_network(p, &a) : r;
	if (r < 0)
		return r;
	*ret = a;
	a.n = 0;
	return 0;
}
