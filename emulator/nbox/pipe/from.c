/* See from.h. */
#include "nbox/pipe/from.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/json/json-file.h"
#include "nbox/pipe/passes.h"
#include "nbox/report/repeats.h"
#include "nbox/retime/retime.h"
#include "schedule/coll.h"

struct source {
	const struct rows_graph *g;
	bool is_one;     /* its rows happened together */
	uint32_t *ranks; /* owned; by stage */
	struct passes *passes;
	struct passes_times *times;
	uint32_t n;
};

static void source_deinit(struct source *s)
{
	for (uint32_t i = 0; s->passes && i < s->n; i++)
		passes_deinit(&s->passes[i]);
	free(s->passes);
	free(s->times);
	free(s->ranks);
}

static void note(struct pipeline *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct pipeline *p, const char *fmt, ...)
{
	size_t at = strlen(p->notes);
	va_list args;

	if (at && at + 3 < sizeof(p->notes))
		at += (size_t)snprintf(p->notes + at, sizeof(p->notes) - at, "; ");
	va_start(args, fmt);
	vsnprintf(p->notes + at, sizeof(p->notes) - at, fmt, args);
	va_end(args);
}

/* --- the stages ------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool has(const struct source *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ranks[i] == rank)
			return true;
	return false;
}

/* Ranks that send to each other, from the lowest one on: in rising order they are the stages. With
 * a communicator of all stages that is its members; others have one a pair. */
static int find_stages(struct source *s, struct err *err)
{
	const struct record *rec = s->g->rec;
	const struct record_op *first = NULL;
	bool has_grown = true;

	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].kind == COLL_SENDRECV && rec->ops[i].n_calls &&
		    (!first || rec->ops[i].world_rank < first->world_rank ||
		     (rec->ops[i].world_rank == first->world_rank &&
		      rec->ops[i].of->n_ranks > first->of->n_ranks)))
			first = &rec->ops[i];
	if (!first)
		return err_set(err, EINVAL, "the run is no pipeline: nobody sends to anybody");
	s->ranks = malloc((PIPE_MAX_STAGES + 1) * sizeof(*s->ranks));
	if (!s->ranks)
		return -ENOMEM;
	s->ranks[s->n++] = first->world_rank;
	for (uint32_t i = 0;
	     first->of->n_ranks > 2 && i < first->of->n_ranks && s->n < PIPE_MAX_STAGES; i++)
		if (!has(s, record_world_rank(first->of, i)))
			s->ranks[s->n++] = record_world_rank(first->of, i);
	while (has_grown && first->of->n_ranks == 2) {
		has_grown = false;
		for (uint64_t i = 0; i < rec->n_ops && s->n < PIPE_MAX_STAGES; i++) {
			const struct record_op *op = &rec->ops[i];

			if (op->kind != COLL_SENDRECV || !has(s, op->world_rank))
				continue;
			for (uint32_t k = 0; k < op->n_calls && s->n < PIPE_MAX_STAGES; k++) {
				uint32_t peer = record_world_rank(op->of, op->calls[k].peer);

				if (has(s, peer))
					continue;
				s->ranks[s->n++] = peer;
				has_grown = true;
			}
		}
	}
	qsort(s->ranks, s->n, sizeof(*s->ranks), by_number);
	return 0;
}

/* Nobody sends beyond a neighbour. */
static int check_neighbours(const struct source *s, struct err *err)
{
	const struct record *rec = s->g->rec;

	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *op = &rec->ops[i];
		uint32_t at = 0;

		while (at < s->n && s->ranks[at] != op->world_rank)
			at++;
		if (op->kind != COLL_SENDRECV || at == s->n)
			continue;
		for (uint32_t k = 0; k < op->n_calls; k++) {
			uint32_t peer = record_world_rank(op->of, op->calls[k].peer);

			if ((at > 0 && peer == s->ranks[at - 1]) ||
			    (at + 1 < s->n && peer == s->ranks[at + 1]))
				continue;
			return err_set(
				err, EINVAL,
				"the run is no pipeline of one stage after the other: rank %u sends to or "
				"receives from rank %u",
				op->world_rank, peer);
		}
	}
	return 0;
}

static int find_passes(struct source *s)
{
	int r = 0;

	s->passes = calloc(s->n, sizeof(*s->passes));
	s->times = calloc(s->n, sizeof(*s->times));
	if (!s->passes || !s->times)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = passes_find(s->g, s->ranks[i], i > 0 ? (int64_t)s->ranks[i - 1] : -1,
				i + 1 < s->n ? (int64_t)s->ranks[i + 1] : -1, &s->passes[i]);
	return r;
}

/* --- the schedule ----------------------------------------------------------------------------- */

/* Iterations of @n messages each way come one after the other in the order of the host's calls. */
static bool are_apart(const struct passes_list *a, const struct passes_list *b, uint32_t n)
{
	for (uint32_t i = n; i < a->n && i < b->n; i += n)
		if (a->ops[i]->name <= b->ops[i - 1]->name ||
		    b->ops[i]->name <= a->ops[i - 1]->name)
			return false;
	return true;
}

/* The messages of the first stage with a record towards the next one and from it; of the last one,
 * from and towards the one before. Return: the stage. */
static uint32_t find_ways(const struct source *s, const struct passes_list **ret_one,
			  const struct passes_list **ret_other)
{
	uint32_t stage = 0;
	bool is_last;

	while (!s->passes[stage].is_recorded)
		stage++;
	is_last = stage + 1 == s->n;
	*ret_one = &s->passes[stage].way[is_last ? PASSES_FROM_PREVIOUS : PASSES_TO_NEXT];
	*ret_other = &s->passes[stage].way[is_last ? PASSES_TO_PREVIOUS : PASSES_FROM_NEXT];
	return stage;
}

/* The shortest iterations that are apart; of the last stage alone each micro-batch may be. Return:
 * 0; -EINVAL with the sentence. */
static int count_micro(const struct source *s, uint32_t *ret, struct err *err)
{
	const struct passes_list *one, *other;
	uint32_t stage = find_ways(s, &one, &other), n = stage + 1 == s->n ? 2 : 1;

	while (2 * n <= one->n && (one->n % n || !are_apart(one, other, n)))
		n++;
	if (one->n != other->n || 2 * n > one->n)
		return err_set(
			err, EINVAL,
			"how many micro-batches has an iteration? --micro M: the %u messages "
			"of rank %u to its neighbour and %u back do not tell",
			one->n, s->ranks[stage], other->n);
	*ret = n;
	return 0;
}

/* The same of a number that was given. */
static int check_micro(const struct source *s, uint32_t n, struct err *err)
{
	const struct passes_list *one, *other;
	uint32_t stage = find_ways(s, &one, &other);

	return are_apart(one, other, n)
		       ? 0
		       : err_set(err, EINVAL,
				 "--micro %u: the messages of rank %u to its neighbour and back do "
				 "not come in iterations of %u micro-batches",
				 n, s->ranks[stage], n);
}

/* By the first stage that shows it. */
static int find_schedule(const struct source *s, struct pipeline *p, struct err *err)
{
	struct pipe_job job = {.n_stages = s->n, .n_micro = p->n_micro};

	for (uint32_t i = 0; i + 1 < s->n; i++) {
		int64_t peak;

		if (!s->passes[i].is_recorded)
			continue;
		peak = passes_peak(s->g, &s->passes[i], p->n_micro);
		if (peak < 0)
			return (int)peak;
		for (int k = PIPE_1F1B; k <= PIPE_SCHEDULES; k++) {
			job.schedule = (enum pipe_schedule)(k % PIPE_SCHEDULES);
			if (pipe_peak(&job, i) != peak)
				continue;
			p->recorded = job.schedule;
			return 0;
		}
		return err_set(
			err, EINVAL,
			"stage %u does %lld forward passes of %u before its first backward pass, as neither "
			"gpipe, 1f1b nor eager does; interleaved schedules are not known",
			i, (long long)peak, p->n_micro);
	}
	p->recorded = PIPE_1F1B;
	note(p, "no record of a stage but the last: taken for 1f1b");
	return 0;
}

/* --- times ------------------------------------------------------------------------------------ */

/* The part of a forward pass in both, of the stages that show it. */
static double forward_share(const struct source *s)
{
	double forward = 0, both = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct passes_times *t = &s->times[i];

		if (!s->passes[i].is_recorded || isnan(t->forward_ns))
			continue;
		if (!isnan(t->backward_ns) || !isnan(t->both_ns)) {
			forward += t->forward_ns;
			both += isnan(t->both_ns) ? t->forward_ns + t->backward_ns : t->both_ns;
		}
	}
	return both > 0 ? forward / both : 1.0 / 3;
}

/* Return: 0; -EINVAL with the sentence. */
static int set_stage(const struct source *s, uint32_t i, double share, struct pipeline *p,
		     struct err *err)
{
	struct passes_times t = s->times[i];
	struct pipe_stage *stage = &p->stages[i];

	if (isnan(t.both_ns) && !isnan(t.forward_ns) && !isnan(t.backward_ns))
		t.both_ns = t.forward_ns + t.backward_ns;
	if (isnan(t.forward_ns) && !isnan(t.both_ns))
		t.forward_ns = isnan(t.backward_ns) ? share * t.both_ns : t.both_ns - t.backward_ns;
	if (isnan(t.forward_ns) && !isnan(t.backward_ns))
		t.forward_ns = t.backward_ns * share / (1 - share);
	if (isnan(t.backward_ns))
		t.backward_ns = isnan(t.both_ns) ? t.forward_ns * (1 / share - 1)
						 : t.both_ns - t.forward_ns;
	if (isnan(t.forward_ns))
		return err_set(err, EINVAL,
			       "what stage %u, rank %u, computes does not show: --micro M?", i,
			       s->ranks[i]);
	stage->forward_ns = fmax(0, t.forward_ns);
	stage->backward_ns = fmax(0, t.backward_ns);
	return 0;
}

/* The median of what the model says that messages over the border behind stage @i take. */
static int set_messages(const struct source *s, uint32_t i, struct pipeline *p)
{
	const struct passes_list *lists[] = {&s->passes[i].way[PASSES_TO_NEXT],
					     &s->passes[i + 1].way[PASSES_FROM_PREVIOUS],
					     &s->passes[i + 1].way[PASSES_TO_PREVIOUS],
					     &s->passes[i].way[PASSES_FROM_NEXT]};
	double *const to[] = {&p->stages[i].to_next_ns, &p->stages[i + 1].to_previous_ns};

	for (int k = 0; k < 2; k++) {
		uint64_t n = 0;
		CLEANUP(freep)
		double *ns = malloc((lists[2 * k]->n + lists[2 * k + 1]->n + 1) * sizeof(*ns));

		if (!ns)
			return -ENOMEM;
		for (int l = 2 * k; l < 2 * k + 2; l++) {
			for (uint32_t j = 0; j < lists[l]->n; j++) {
				ns[n++] = lists[l]->ops[j]->model_ns;
				p->message_bytes[i] = lists[l]->ops[j]->calls[0].bytes;
			}
		}
		*to[k] = repeats_median(ns, n);
	}
	return 0;
}

/* From one iteration's first message to the next one's, where all stages ran together. */
static int set_iteration(const struct source *s, struct pipeline *p)
{
	const struct passes_list *l = &s->passes[0].way[PASSES_TO_NEXT];
	uint64_t n = l->n / p->n_micro, k = 0;
	CLEANUP(freep) double *ns = malloc((n + 1) * sizeof(*ns));

	if (!ns)
		return -ENOMEM;
	for (uint64_t i = 0; i + 1 < n; i++)
		ns[k++] = (double)(int64_t)(l->ops[(i + 1) * p->n_micro]->virtual_arrive_ns -
					    l->ops[i * p->n_micro]->virtual_arrive_ns);
	p->recorded_ns = k ? repeats_median(ns, k) : 0;
	return 0;
}

static bool has_messages(const struct source *s, uint32_t i)
{
	return s->passes[i].is_recorded || s->passes[i + 1].is_recorded;
}

/* Borders without a record are as the nearest one before, or else behind, that has one. */
static void fill_in_messages(const struct source *s, struct pipeline *p)
{
	for (uint32_t i = 0; i + 1 < s->n; i++) {
		uint32_t from = i;

		while (from > 0 && !has_messages(s, from))
			from--;
		while (!has_messages(s, from))
			from++;
		p->stages[i].to_next_ns = p->stages[from].to_next_ns;
		p->stages[i + 1].to_previous_ns = p->stages[from + 1].to_previous_ns;
		p->message_bytes[i] = p->message_bytes[from];
	}
}

/* Stages without a record compute as the nearest one before, or else behind, that has one. */
static void fill_in(const struct source *s, struct pipeline *p)
{
	uint32_t n = 0, first = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t from = i;

		if (s->passes[i].is_recorded)
			continue;
		while (from > 0 && !s->passes[from].is_recorded)
			from--;
		while (!s->passes[from].is_recorded)
			from++;
		p->stages[i].forward_ns = p->stages[from].forward_ns;
		p->stages[i].backward_ns = p->stages[from].backward_ns;
		first = n++ ? first : i;
	}
	if (n)
		note(p,
		     "%u of %u stages, stage %u first, have no record: they compute and send as one that has; "
		     "--with RUN adds the record of another stage",
		     n, s->n, first);
}

static int read_times(struct source *s, struct pipeline *p, struct err *err)
{
	struct pipe_job job = {.n_stages = s->n, .n_micro = p->n_micro, .schedule = p->recorded};
	double share;
	int r = 0;

	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = passes_times(&s->passes[i], &job, i, &s->times[i]);
	share = forward_share(s);
	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = s->passes[i].is_recorded ? set_stage(s, i, share, p, err) : 0;
	if (r < 0)
		return r;
	fill_in(s, p);
	for (uint32_t i = 0; i + 1 < s->n && r == 0; i++)
		r = set_messages(s, i, p);
	fill_in_messages(s, p);
	if (!isnan(s->times[0].update_ns))
		p->update_ns = fmax(0, s->times[0].update_ns - p->stages[0].forward_ns -
					       p->stages[0].backward_ns);
	return r == 0 && s->is_one && !p->notes[0] ? set_iteration(s, p) : r;
}

static int from_rows(const struct rows_graph *g, bool is_one, uint64_t n_micro,
		     struct pipeline *ret, struct err *err)
{
	CLEANUP(source_deinit) struct source s = {.g = g, .is_one = is_one};
	struct pipeline p = {.is_recorded = true, .n_micro = (uint32_t)n_micro};
	int r = find_stages(&s, err);

	r = r == 0 ? check_neighbours(&s, err) : r;
	r = r == 0 ? find_passes(&s) : r;
	if (r == 0)
		r = n_micro ? check_micro(&s, p.n_micro, err) : count_micro(&s, &p.n_micro, err);
	r = r == 0 ? find_schedule(&s, &p, err) : r;
	if (r < 0)
		return r;
	p.n_stages = s.n;
	p.stages = calloc(s.n, sizeof(*p.stages));
	p.message_bytes = calloc(s.n, sizeof(*p.message_bytes));
	r = p.stages && p.message_bytes ? read_times(&s, &p, err) : -ENOMEM;
	if (r < 0)
		pipeline_deinit(&p);
	else
		*ret = p;
	return r;
}

int pipeline_from_graph(const struct rows_graph *g, uint64_t n_micro, struct pipeline *ret,
			struct err *err)
{
	return from_rows(g, true, n_micro, ret, err);
}

int pipeline_from_record(const char *const *runs, size_t n_runs, uint64_t n_micro,
			 struct pipeline *ret, struct err *err)
{
	CLEANUP(recorded_deinit) struct recorded run = {0};
	int r = recorded_load_all(runs, n_runs, &run, err);

	return r == 0 ? from_rows(&run.graph, run.n_others == 0, n_micro, ret, err) : r;
}

int pipeline_comm_from(const char *path, double *ret_ns, uint64_t *ret_bytes, struct err *err)
{
	CLEANUP(json_freep) json_t *o = NULL;
	int r = json_file_read(path, &o, err);
	double ns = json_number_value(json_object_get(o, "end_ns"));

	if (r < 0)
		return r;
	if (!json_is_string(json_object_get(o, "strategy")) || ns <= 0)
		return err_set(err, EINVAL,
			       "%s is no plan of a resharding that takes time: write one by nbox "
			       "reshard plan --json FILE",
			       path);
	*ret_ns = ns;
	*ret_bytes = (uint64_t)json_integer_value(json_object_get(o, "bytes"));
	return 0;
}
