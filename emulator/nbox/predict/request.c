#include "nbox/predict/request.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/ask/configure.h"
#include "nbox/trace/load.h"
#include "predict/iterations.h"

#define OVERHEADS_BYTES_MAX (64u << 20)
#define RANKS_MAX 65536

int request_init(struct predict_request *q)
{
	*q = (struct predict_request){.profiler = overhead_profiler_paper};
	return config_new(&q->config);
}

void request_deinit(struct predict_request *q)
{
	exchanges_deinit(&q->exchanges);
	host_calls_free(q->calls, q->trace.n_ranks);
	trace_deinit(&q->trace);
	overheads_deinit(&q->overheads);
	ask_close(q->ask);
	config_free(q->config);
	free(q->scale_of);
	free(q->iterations);
}

static int take_policy(const char *value, enum predict_sync *ret, struct err *err)
{
	if (strcmp(value, "event") != 0 && strcmp(value, "paper") != 0)
		return err_set(err, EINVAL,
			       "'%s' is neither event, the order that events have, nor paper, "
			       "Algorithm 1 as it is printed",
			       value);
	*ret = strcmp(value, "paper") == 0 ? PREDICT_PAPER : PREDICT_EVENT;
	return 0;
}

static int take_ranks(const char *value, uint32_t *ret, struct err *err)
{
	uint64_t n;
	int r = units_count(value, &n, err);

	if (r == 0 && (!n || n > RANKS_MAX))
		return err_set(err, EINVAL, "'%s': from 1 to %d", value, RANKS_MAX);
	if (r == 0)
		*ret = (uint32_t)n;
	return r;
}

static int take_flag(struct predict_request *q, const struct option_word *w, struct err *err)
{
	char model[PATH_MAX + 32];

	switch ((unsigned int)w->id) {
	case FLAG_PREDICT_OVERHEADS:
		q->overheads_path = w->value;
		return 0;
	case FLAG_PREDICT_JSON:
		q->json = w->value;
		return 0;
	case FLAG_CONFIG:
		q->file = w->value;
		q->has_cluster = true;
		return 0;
	case FLAG_PREDICT_POLICY:
		return take_policy(w->value, &q->sync, err);
	case FLAG_PREDICT_RANKS:
		return take_ranks(w->value, &q->n_ranks, err);
	case FLAG_PREDICT_SCALE:
		if (q->n_scales == ARRAY_SIZE(q->scales))
			return err_set(err, EINVAL, "more than %zu of them", ARRAY_SIZE(q->scales));
		q->scales[q->n_scales++] = w->value;
		return 0;
	case FLAG_PROFILER_EVENT:
		q->profiler_flag = "--profiler-event";
		return units_time(w->value, &q->profiler.host_ns, err);
	case FLAG_PROFILER_LAUNCH:
		q->profiler_flag = "--profiler-launch";
		return units_time(w->value, &q->profiler.launch_ns, err);
	case FLAG_PREDICT_MODELS:
	default:
		q->has_cluster = true;
		snprintf(model, sizeof(model), "fitted:file=%s", w->value);
		return config_set(q->config, CONFIG_MODEL, SOURCE_FLAG, model);
	}
}

static int take_trace(struct predict_request *q, const char *path, struct err *err)
{
	if (q->n_paths == PREDICT_PATHS_MAX)
		return err_set(err, EINVAL, "more than %d traces: name their folder",
			       PREDICT_PATHS_MAX);
	q->paths[q->n_paths++] = path;
	return 0;
}

int request_take(struct predict_request *q, enum command command, int argc, char **argv,
		 struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(command, argc, argv, &i, &w, err);
		if (r == 0 && w.id == FLAG_HELP)
			return 1;
		if (r == OPTION_NONE) {
			r = take_trace(q, argv[i++], err);
		} else if (r == 0 && w.id < CONFIG_OPTIONS) {
			q->has_cluster = true;
			r = config_take(q->config, &w, err);
		} else if (r == 0) {
			r = take_flag(q, &w, err);
			r = r < 0 ? err_prefix(err, r, "%s", w.name) : 0;
		}
	}
	return r < 0 || q->n_paths
		       ? r
		       : err_set(err, EINVAL,
				 "of which run, or traces? nbox list has the names of runs; a folder has "
				 "a trace of PyTorch's profiler a rank");
}

uint32_t request_ranks(const struct predict_request *q)
{
	return q->n_ranks ? q->n_ranks : q->trace.n_ranks;
}

/* --- before the first iteration --- */

static int find_overheads(struct predict_request *q, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int r;

	if (!q->overheads_path) {
		r = overheads_find(&q->trace, &q->profiler, &q->overheads);
		return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
	}
	r = file_read(q->overheads_path, OVERHEADS_BYTES_MAX, &text, &len, err);
	return r < 0 ? r : overheads_parse(q->overheads_path, text, len, &q->overheads, err);
}

/* "0-3=1.2" */
static int take_scale(struct predict_request *q, const char *text, struct err *err)
{
	const char *is = strchr(text, '=');
	CLEANUP(freep) uint32_t *ranks = NULL;
	char list[256];
	double ratio;
	size_t n;
	int r;

	if (!is || (size_t)(is - text) >= sizeof(list))
		return err_set(err, EINVAL, "--scale-compute '%s': RANKS=RATIO, such as 3=1.2",
			       text);
	snprintf(list, sizeof(list), "%.*s", (int)(is - text), text);
	r = units_ranks(list, request_ranks(q), &ranks, &n, err);
	r = r < 0 ? r : units_ratio(is + 1, &ratio, err);
	if (r < 0)
		return err_prefix(err, r, "--scale-compute '%s'", text);
	if (!(ratio > 0 && ratio <= 1000))
		return err_set(err, EINVAL, "--scale-compute '%s': above 0, up to 1000", text);
	for (size_t i = 0; i < n; i++) {
		if (!isnan(q->scale_of[ranks[i]]))
			return err_set(err, EINVAL, "--scale-compute '%s': rank %u a second time",
				       text, ranks[i]);
		q->scale_of[ranks[i]] = ratio;
	}
	return 0;
}

static int make_scales(struct predict_request *q, struct err *err)
{
	uint32_t n = request_ranks(q);
	int r = 0;

	if (!q->n_scales)
		return 0;
	q->scale_of = malloc(n * sizeof(*q->scale_of));
	if (!q->scale_of)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		q->scale_of[i] = NAN;
	for (uint32_t i = 0; i < q->n_scales && r == 0; i++)
		r = take_scale(q, q->scales[i], err);
	for (uint32_t i = 0; i < n; i++)
		q->scale_of[i] = isnan(q->scale_of[i]) ? 1 : q->scale_of[i];
	return r;
}

static int open_cluster(struct predict_request *q, struct err *err)
{
	return q->has_cluster
		       ? ask_configure_plain(q->config, q->file, request_ranks(q), &q->ask, err)
		       : 0;
}

/* --- collectives by the cluster's model --- */

/* Its number in its communicator; 0: it is none there. */
static uint32_t root_of(const struct membership *m, const struct trace_op *op)
{
	int64_t rank = op->peer == TRACE_NONE ? -1 : membership_rank(m, op->peer);

	return rank < 0 ? 0 : (uint32_t)rank;
}

static int collective_ns(void *ctx, const struct trace *t, const struct trace_op *op,
			 uint32_t n_ranks, uint32_t n_copies, double *ret_ns, struct err *err)
{
	const struct predict_request *q = ctx;
	const struct trace_comm *comm = op->comm == TRACE_NONE ? NULL : &t->comms[op->comm];
	bool is_world = n_ranks == t->n_ranks;
	struct membership m = {.n_ranks = is_world ? q->config->world : n_ranks, .stride = 1};
	enum coll_kind kind = (enum coll_kind)op->coll;
	uint64_t bytes = op->bytes;
	struct answer answer;
	int r;

	(void)n_copies;
	if (op->kind != TRACE_COLLECTIVE || op->coll == TRACE_NONE || m.n_ranks < 2)
		return 0;
	/* Calls to all and from all, oneself among them, as PyTorch's. */
	if (op->coll == COLL_SENDRECV) {
		kind = COLL_ALLTOALL;
		bytes = op->bytes / 2 / n_ranks;
	}
	/* Others than all: the trace's own members, where they have places in this world. */
	if (!is_world && comm && comm->members && comm->n == n_ranks &&
	    comm->members[comm->n - 1] < q->config->world)
		m.table = comm->members;
	r = ask_op_of(q->ask, is_world ? 0 : op->comm + 1, &m, kind, bytes, 1, root_of(&m, op),
		      &answer, err);
	if (r == 0)
		*ret_ns = answer.ns;
	return r < 0 ? err_prefix(err, r, "%s of %llu bytes", coll_kind_name(kind),
				  (unsigned long long)bytes)
		     : 0;
}

static int message_ns(void *ctx, const struct exchange_message *m, double *ret_ns, struct err *err)
{
	const struct predict_request *q = ctx;
	bool is_up = m->src < m->dst;
	const uint32_t ends[2] = {is_up ? m->src : m->dst, is_up ? m->dst : m->src};
	const struct membership members = {.n_ranks = 2, .stride = 1, .table = ends};
	const uint64_t bytes[4] = {[1] = is_up ? m->bytes : 0, [2] = is_up ? 0 : m->bytes};
	struct answer answer;
	int r;

	if (!m->bytes || m->src >= q->config->world || m->dst >= q->config->world)
		return 0;
	r = ask_matrix_of(q->ask, &members, bytes, &answer, err);
	if (r == 0)
		*ret_ns = answer.ns;
	return r < 0 ? err_prefix(err, r, "%llu bytes from rank %u to rank %u",
				  (unsigned long long)m->bytes, m->src, m->dst)
		     : 0;
}

/* --- iterations --- */

static int play_step(const struct predict_request *q, uint32_t step, struct task *task,
		     struct predict *p, struct err *err)
{
	const struct task_settings s = {.overheads = &q->overheads,
					.n_ranks = q->n_ranks,
					.scales = q->scale_of,
					.collective_ns = q->ask ? collective_ns : NULL,
					.message_ns = q->ask ? message_ns : NULL,
					.ctx = (void *)(uintptr_t)q};
	uint32_t op;
	int r = task_make(&q->trace, &q->exchanges, q->calls, step, &s, task, err);

	if (r < 0)
		return r;
	r = predict_play(&task->t, q->sync, p, &op);
	if (r == -ELOOP) {
		const struct predict_op *o = &task->t.ops[op];
		uint32_t kernel = task->kernel_ops[o->first + o->n - 1];
		const struct trace_op *k = &q->trace.ops[kernel];

		r = err_set(
			err, EINVAL,
			"op %u, '%.60s' of rank %u, waits for ranks that wait for it, or whose trace "
			"does not have it: cut all traces at the same iterations%s",
			kernel, trace_name(&q->trace, k->name), q->trace.ranks[k->rank].rank,
			q->sync == PREDICT_PAPER ? ". The paper has one stream of communication; "
						   "--policy event knows several"
						 : "");
	} else if (r < 0) {
		err_set(err, ENOMEM, "out of memory");
	}
	if (r < 0)
		task_deinit(task);
	return r;
}

int request_play_one(const struct predict_request *q, uint32_t i, struct task *ret_task,
		     struct predict *ret, struct err *err)
{
	return play_step(q, q->iterations[i].step, ret_task, ret, err);
}

static int by_number(const void *a, const void *b)
{
	const struct predict_iteration *x = a, *y = b;

	return x->step < y->step ? -1 : x->step > y->step;
}

static int by_time(const void *a, const void *b)
{
	const struct predict_iteration *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : by_number(a, b);
}

/* Iterations are in order. */
static void count_exchanges(struct predict_request *q)
{
	const struct trace *t = &q->trace;

	for (uint32_t i = 0; i < t->n_ops; i++) {
		const struct predict_iteration of = {.step = t->ops[i].step};
		struct predict_iteration *it = NULL;

		if (exchange_is_one(&t->ops[i]))
			it = bsearch(&of, q->iterations, q->n_iterations, sizeof(of), by_number);
		if (it)
			it->n_exchanges++;
	}
}

/* At some rank the trace begins with a collective: what was computed before it is not known. */
static bool begins_within(const struct predict_request *q)
{
	const struct trace *t = &q->trace;

	for (uint32_t r = 0; r < t->n_ranks; r++) {
		uint32_t first = t->ranks[r].first;

		if (t->ranks[r].n && q->exchanges.joins[first] != TRACE_NONE &&
		    t->ops[first].step == q->iterations[0].step)
			return true;
	}
	return false;
}

static void drop_first(struct predict_request *q)
{
	memmove(q->iterations, q->iterations + 1, --q->n_iterations * sizeof(*q->iterations));
}

/* The first and the last one that have fewer exchanges than any other, and a first one that begins
 * within. */
static void drop_partial(struct predict_request *q)
{
	uint32_t n = q->n_iterations, least = UINT32_MAX, first, last;

	if (n < 2)
		return;
	count_exchanges(q);
	first = q->iterations[0].n_exchanges;
	last = q->iterations[n - 1].n_exchanges;
	for (uint32_t i = 1; i + 1 < n; i++)
		least = q->iterations[i].n_exchanges < least ? q->iterations[i].n_exchanges : least;
	if (last < least && (n > 2 || last < first)) {
		q->n_partial++;
		q->n_iterations--;
	}
	if (q->n_iterations > 1 &&
	    (begins_within(q) || (first < least && (n > 2 || first < last)))) {
		q->n_partial++;
		drop_first(q);
	}
}

/* The iterations that the trace has, or all of it as one. */
static int find_iterations(struct predict_request *q, struct err *err)
{
	const struct trace *t = &q->trace;
	size_t size = 1;

	for (uint32_t i = 0; i < t->n_ops; i++)
		size += t->ops[i].step != TRACE_NONE &&
			(!i || t->ops[i].step != t->ops[i - 1].step);
	q->iterations = calloc(size, sizeof(*q->iterations));
	if (!q->iterations)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].step != TRACE_NONE && (!i || t->ops[i].step != t->ops[i - 1].step))
			q->iterations[q->n_iterations++].step = t->ops[i].step;
	qsort(q->iterations, q->n_iterations, sizeof(*q->iterations), by_number);
	size = 0;
	for (uint32_t i = 0; i < q->n_iterations; i++)
		if (!i || q->iterations[i].step != q->iterations[size - 1].step)
			q->iterations[size++] = q->iterations[i];
	q->n_iterations = (uint32_t)size;
	if (!size)
		q->iterations[q->n_iterations++].step = TRACE_NONE;
	for (; q->n_iterations > 1 && q->iterations[0].step <= t->n_warm_up; q->n_warm_up++)
		drop_first(q);
	drop_partial(q);
	return 0;
}

static bool has_host(const struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].kind == TRACE_HOST || t->ops[i].kind == TRACE_CALL)
			return true;
	return false;
}

/* Options that would do nothing for this trace, or that it cannot answer. */
static int check_words(const struct predict_request *q, struct err *err)
{
	const struct trace *t = &q->trace;

	if ((q->overheads_path || q->profiler_flag) && !has_host(t))
		return err_set(err, EINVAL,
			       "%s: of hosts, which no trace here has; PyTorch's profiler writes "
			       "them with ProfilerActivity.CPU",
			       q->overheads_path ? "--overheads" : q->profiler_flag);
	if (q->overheads_path && q->profiler_flag)
		return err_set(err, EINVAL, "%s: of the trace's own overheads, not of --overheads",
			       q->profiler_flag);
	if (q->n_ranks && q->n_ranks < t->n_ranks)
		return err_set(err, EINVAL, "--ranks %u: the trace has %u", q->n_ranks, t->n_ranks);
	if (q->n_ranks % t->n_ranks && q->exchanges.n_messages)
		return err_set(err, EINVAL,
			       "--ranks %u: the %u traced ranks send to each other: a multiple of "
			       "%u copies all of them",
			       q->n_ranks, t->n_ranks, t->n_ranks);
	return 0;
}

int request_play(struct predict_request *q, struct err *err)
{
	int r = trace_load_to_play(q->paths, q->n_paths, &q->trace, err);

	if (r == 0 && (exchanges_find(&q->trace, &q->exchanges) < 0 ||
		       iterations_settle(&q->trace, &q->exchanges) < 0))
		r = err_set(err, ENOMEM, "out of memory");
	q->calls = r < 0 ? NULL : host_calls_by_step(&q->trace);
	if (r == 0 && !q->calls)
		r = err_set(err, ENOMEM, "out of memory");
	r = r < 0 ? r : check_words(q, err);
	r = r < 0 ? r : find_overheads(q, err);
	r = r < 0 ? r : make_scales(q, err);
	r = r < 0 ? r : open_cluster(q, err);
	r = r < 0 ? r : find_iterations(q, err);
	for (uint32_t i = 0; i < q->n_iterations && r == 0; i++) {
		struct predict_iteration *it = &q->iterations[i];
		struct task task;
		struct predict p;

		r = play_step(q, it->step, &task, &p, err);
		if (r < 0)
			break;
		it->ns = p.ns;
		it->baseline_ns = p.baseline;
		it->traced_ns = task.traced_ns;
		predict_deinit(&p);
		task_deinit(&task);
	}
	if (r == 0)
		qsort(q->iterations, q->n_iterations, sizeof(*q->iterations), by_time);
	return r;
}

void request_print(const struct predict_request *q, bool has_host, FILE *to)
{
	char model[512];

	fprintf(to, "# %u rank%s", request_ranks(q), request_ranks(q) == 1 ? "" : "s");
	if (request_ranks(q) != q->trace.n_ranks)
		fprintf(to, ", copies of %u traced", q->trace.n_ranks);
	fprintf(to, "; collectives %s; %s; %s\n",
		q->ask ? config_model(q->config, model, sizeof(model)) : "as long as traced",
		!has_host           ? "the trace has no host"
		: q->overheads_path ? q->overheads_path
				    : "T1 to T5 of this trace",
		q->sync == PREDICT_PAPER ? "Algorithm 1 as printed" : "in the order of events");
}
