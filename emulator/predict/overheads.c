#include "predict/overheads.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "predict/calls.h"

const struct overhead_profiler overhead_profiler_paper = {2000, 4000};

static const char *const kinds[OVERHEADS] = {"T1", "T2", "T3", "T4", "T5"};

/* One that was measured. */
struct sample {
	uint32_t name; /* of the trace */
	enum overhead_kind kind;
	double ns;
};

struct finder {
	const struct trace *t;
	struct overhead_profiler profiler;
	struct sample *list; /* owned */
	size_t n, capacity;
};

static int add(struct finder *f, enum overhead_kind kind, uint32_t name, double ns)
{
	if (f->n == f->capacity) {
		size_t capacity = 2 * f->capacity + 1024;
		struct sample *more = realloc(f->list, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->list = more;
		f->capacity = capacity;
	}
	f->list[f->n++] = (struct sample){name, kind, fmax(0, ns)};
	return 0;
}

/* What an op's stretch of time really took: without the profiler's part of the events in it, and
 * without waiting for the GPU. @from, @to: ops of the trace that start in it. */
static double spent(const struct finder *f, double ns, uint32_t from, uint32_t to, double end)
{
	for (uint32_t i = from; i < to && f->t->ops[i].start_ns < end; i++) {
		const struct trace_op *op = &f->t->ops[i];

		if (op->kind == TRACE_SYNC)
			ns -= fmin(op->end_ns, end) - op->start_ns;
		if (op->kind == TRACE_HOST || op->kind == TRACE_CALL || op->kind == TRACE_SYNC)
			ns -= f->profiler.host_ns;
	}
	return ns;
}

/* The launches of one op. */
static int take_call(struct finder *f, const struct trace_rank *r, const struct calls *c,
		     const struct call *call)
{
	const struct trace_op *ops = f->t->ops, *op = &ops[call->op];
	uint32_t end = r->first + r->n, name = op->name, last = TRACE_NONE;
	double at = op->start_ns;
	int bad = 0;

	for (uint32_t i = call->first; i < call->first + call->n && bad == 0; i++) {
		uint32_t by = ops[c->kernels[i]].launched_by;

		if (by == TRACE_NONE || by == last || ops[by].kind != TRACE_CALL)
			continue;
		bad = add(f, last == TRACE_NONE ? OVERHEAD_T2 : OVERHEAD_T5, name,
			  spent(f, ops[by].start_ns - at,
				(last == TRACE_NONE ? call->op : last) + 1, end, ops[by].start_ns) -
				  (last == TRACE_NONE ? f->profiler.host_ns : 0));
		if (bad == 0)
			bad = add(f, OVERHEAD_T4, ops[by].name,
				  ops[by].end_ns - ops[by].start_ns - f->profiler.host_ns -
					  f->profiler.launch_ns);
		at = ops[by].end_ns;
		last = by;
	}
	if (bad < 0)
		return bad;
	if (last == TRACE_NONE)
		return add(f, OVERHEAD_T5, name,
			   op->kind == TRACE_SYNC
				   ? 0
				   : spent(f, op->end_ns - op->start_ns - f->profiler.host_ns,
					   call->op + 1, end, op->end_ns));
	return add(f, OVERHEAD_T3, name, spent(f, op->end_ns - at, last + 1, end, op->end_ns));
}

static int take_rank(struct finder *f, uint32_t rank)
{
	const struct trace_rank *r = &f->t->ranks[rank];
	struct calls c;
	double before = -INFINITY;
	int bad = host_calls_find(f->t, rank, &c);

	if (bad < 0)
		return bad;
	for (uint32_t i = 0; i < c.n && bad == 0; i++) {
		const struct trace_op *op = &f->t->ops[c.list[i].op];
		double gap = op->start_ns - before;

		if (!c.list[i].is_of_host)
			continue;
		if (gap >= 0 && gap < OVERHEAD_GAP_MAX_NS)
			bad = add(f, OVERHEAD_T1, 0, gap - f->profiler.host_ns);
		before = op->end_ns;
		if (bad == 0)
			bad = take_call(f, r, &c, &c.list[i]);
	}
	host_calls_deinit(&c);
	return bad;
}

/* --- statistics --- */

static int by_kind(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static int by_name(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->name != y->name ? (x->name < y->name ? -1 : 1) : by_kind(a, b);
}

/* @list: one kind, by time. */
static struct overhead measure(const struct sample *list, size_t n)
{
	double low = list[n / 4].ns, high = list[(3 * n) / 4].ns, reach = 1.5 * (high - low);
	double sum = 0, squares = 0;
	struct overhead o = {.n = 0};

	for (size_t i = 0; i < n; i++) {
		if (list[i].ns < low - reach || list[i].ns > high + reach)
			continue;
		sum += list[i].ns;
		squares += list[i].ns * list[i].ns;
		o.n++;
	}
	o.mean_ns = sum / (double)o.n;
	o.std_ns = sqrt(fmax(0, squares / (double)o.n - o.mean_ns * o.mean_ns));
	return o;
}

/* Each kind's part of @list, sorted by kind. */
static void measure_kinds(const struct sample *list, size_t n, struct overhead *ret)
{
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && list[to].kind == list[from].kind;)
			to++;
		ret[list[from].kind] = measure(&list[from], to - from);
	}
}

static int by_text(const void *a, const void *b)
{
	const struct overhead_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int summarize(struct finder *f, struct overheads *o)
{
	qsort(f->list, f->n, sizeof(*f->list), by_kind);
	measure_kinds(f->list, f->n, o->all);
	qsort(f->list, f->n, sizeof(*f->list), by_name);
	for (size_t from = 0, to; from < f->n; from = to) {
		struct overhead_name *more;

		for (to = from; to < f->n && f->list[to].name == f->list[from].name;)
			to++;
		while (from < to && f->list[from].kind == OVERHEAD_T1) /* it is of no name */
			from++;
		if (from == to)
			continue;
		more = realloc(o->names, (o->n + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		o->names = more;
		o->names[o->n] = (struct overhead_name){
			.name = strdup(trace_name(f->t, f->list[from].name))};
		if (!o->names[o->n].name)
			return -ENOMEM;
		measure_kinds(&f->list[from], to - from, o->names[o->n++].of);
	}
	if (o->n)
		qsort(o->names, o->n, sizeof(*o->names), by_text);
	return 0;
}

int overheads_find(const struct trace *t, const struct overhead_profiler *profiler,
		   struct overheads *ret)
{
	struct finder f = {.t = t, .profiler = *profiler};
	struct overheads o = {.n = 0};
	int r = 0;

	for (uint32_t rank = 0; rank < t->n_ranks && r == 0; rank++)
		r = take_rank(&f, rank);
	if (r == 0 && f.n)
		r = summarize(&f, &o);
	free(f.list);
	if (r < 0)
		overheads_deinit(&o);
	else
		*ret = o;
	return r;
}

void overheads_deinit(struct overheads *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		free(o->names[i].name);
	free(o->names);
}

/* --- their use --- */

static const struct overhead_name *find_name(const struct overheads *o, const char *name)
{
	struct overhead_name key = {.name = (char *)(uintptr_t)name};

	return name && o->n ? bsearch(&key, o->names, o->n, sizeof(key), by_text) : NULL;
}

static double mean_of(const struct overheads *o, const struct overhead_name *name,
		      enum overhead_kind kind)
{
	return name && name->of[kind].n ? name->of[kind].mean_ns : o->all[kind].mean_ns;
}

struct predict_host overheads_of(const struct overheads *o, const char *op, const char *call)
{
	const struct overhead_name *of_op = find_name(o, op), *of_call = find_name(o, call);

	return (struct predict_host){.before = o->all[OVERHEAD_T1].mean_ns,
				     .first = mean_of(o, of_op, OVERHEAD_T2),
				     .last = mean_of(o, of_op, OVERHEAD_T3),
				     .launch = mean_of(o, of_call, OVERHEAD_T4),
				     .next = mean_of(o, of_op, OVERHEAD_T5),
				     .gap = PREDICT_GAP_NS};
}

/* --- JSON --- */

static int pack(json_t *to, const struct overhead *of)
{
	for (int k = 0; k < OVERHEADS; k++)
		if (of[k].n && json_object_set_new(to, kinds[k],
						   json_pack("{s:f, s:f, s:I}", "mean_ns",
							     of[k].mean_ns, "std_ns", of[k].std_ns,
							     "n", (json_int_t)of[k].n)) < 0)
			return -ENOMEM;
	return 0;
}

int overheads_write(const struct overheads *o, FILE *to)
{
	json_auto_t *doc = json_object();
	json_t *all = json_object(), *names = json_object();
	int r;

	if (!doc || json_object_set_new(doc, "all", all) < 0 ||
	    json_object_set_new(doc, "names", names) < 0 || pack(all, o->all) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->n; i++) {
		json_t *one = json_object();

		if (!one || json_object_set_new(names, o->names[i].name, one) < 0 ||
		    pack(one, o->names[i].of) < 0)
			return -ENOMEM;
	}
	r = json_dumpf(doc, to, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	return r < 0 || fputc('\n', to) == EOF ? -ENOMEM : 0;
}

static int unpack(const char *file, const char *where, const json_t *from, struct overhead *ret,
		  struct err *err)
{
	if (!json_is_object(from))
		return err_set(err, EINVAL, "%s: '%.80s' is no list of T1 to T5", file, where);
	for (int k = 0; k < OVERHEADS; k++) {
		const json_t *o = json_object_get(from, kinds[k]);
		double mean = json_number_value(json_object_get(o, "mean_ns"));

		if (!o)
			continue;
		if (!json_is_number(json_object_get(o, "mean_ns")) || !(mean >= 0 && mean < 60e9))
			return err_set(err, EINVAL,
				       "%s: %s of '%.80s': mean_ns is no time from 0 to a minute",
				       file, kinds[k], where);
		ret[k] =
			(struct overhead){mean, json_number_value(json_object_get(o, "std_ns")), 1};
		if (json_integer_value(json_object_get(o, "n")) > 1)
			ret[k].n = (uint64_t)json_integer_value(json_object_get(o, "n"));
	}
	return 0;
}

int overheads_parse(const char *file, const char *text, size_t len, struct overheads *ret,
		    struct err *err)
{
	json_error_t why;
	json_auto_t *doc = json_loadb(text, len, 0, &why);
	struct overheads o = {.n = 0};
	const char *key;
	json_t *value, *names;
	int r;

	if (!doc)
		return err_set(err, EINVAL, "%s:%d: %s", file, why.line, why.text);
	names = json_object_get(doc, "names");
	r = unpack(file, "all", json_object_get(doc, "all"), o.all, err);
	if (r == 0 && json_object_size(names)) {
		o.names = calloc(json_object_size(names), sizeof(*o.names));
		r = o.names ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	if (r == 0)
		json_object_foreach(names, key, value)
		{
			o.names[o.n].name = strdup(key);
			if (!o.names[o.n].name)
				r = err_set(err, ENOMEM, "out of memory");
			else
				r = unpack(file, key, value, o.names[o.n++].of, err);
			if (r < 0)
				break;
		}
	if (r < 0) {
		overheads_deinit(&o);
		return r;
	}
	if (o.n)
		qsort(o.names, o.n, sizeof(*o.names), by_text);
	*ret = o;
	return 0;
}
