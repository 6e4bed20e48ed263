/* See stages.h. */
#include "nbox/why/stages.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "nbox/pipe/from.h"
#include "schedule/coll.h"

/* Messages on the critical path. */
static double path_ns(const struct why *w)
{
	double ns = 0;

	for (uint32_t i = 0; i < w->n_parts; i++) {
		const struct why_part *p = &w->parts[i];

		if (p->op == COLL_SENDRECV &&
		    (p->kind == WHY_MODELLED || p->kind == WHY_INJECTED || p->kind == WHY_SHARED))
			ns += p->ns;
	}
	return ns;
}

static const struct pipeline_row *find_row(const struct pipeline_answer *a,
					   enum pipe_schedule schedule, enum pipe_overlap overlap)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->rows[i].job.schedule == schedule && a->rows[i].job.overlap == overlap)
			return &a->rows[i];
	return NULL;
}

/* Of the rows of a schedule what comes nearest to @ns. */
static const struct pipeline_row *nearest(const struct pipeline_answer *a,
					  enum pipe_schedule schedule, double ns)
{
	const struct pipeline_row *best = find_row(a, schedule, PIPE_NOBODY);

	for (size_t i = 0; i < a->n; i++)
		if (a->rows[i].job.schedule == schedule &&
		    fabs(a->rows[i].times.end_ns - ns) < fabs(best->times.end_ns - ns))
			best = &a->rows[i];
	return best;
}

static void tell(const struct pipeline *p, const struct pipeline_answer *a, struct why *w)
{
	const struct pipeline_row *is = nearest(a, p->recorded, w->median_ns - p->update_ns);
	const struct pipeline_row *eager = find_row(a, PIPE_EAGER, PIPE_NOBODY);

	w->pipeline = (struct why_pipeline){
		.n_stages = p->n_stages,
		.n_micro = p->n_micro,
		.schedule = pipeline_schedule(p->recorded),
		.overlap = pipeline_overlap(is->job.overlap),
		.ns = is->times.end_ns + p->update_ns,
		.beside_ns = find_row(a, p->recorded, PIPE_NOBODY)->times.end_ns + p->update_ns,
		.signal_ns = is->signal_ns + p->update_ns,
		.eager_ns = eager->times.end_ns + p->update_ns,
		.path_ns = path_ns(w),
		.message_bytes = p->message_bytes[0],
	};
	if (pipe_peak(&eager->job, 0) > pipe_peak(&is->job, 0))
		w->pipeline.more = pipe_peak(&eager->job, 0) - pipe_peak(&is->job, 0);
}

int stages_find(const struct rows_graph *g, struct why *w)
{
	CLEANUP(pipeline_deinit) struct pipeline p = {.n_stages = 0};
	CLEANUP(pipeline_answer_deinit) struct pipeline_answer a = {.n = 0};
	struct pipeline_wanted wanted = {.overlaps = (1u << PIPE_OVERLAPS) - 1};
	struct err err;
	int r = pipeline_from_graph(g, 0, &p, &err);

	wanted.schedules = 1u << p.recorded | 1u << PIPE_EAGER;
	if (p.recorded == PIPE_EAGER) /* stages would wait for each other */
		wanted.overlaps &= ~(1u << PIPE_BOTH);
	if (r == 0)
		r = pipeline_play(&p, &wanted, &a, &err);
	if (r == 0)
		tell(&p, &a, w);
	return r == -ENOMEM ? r : 0;
}
