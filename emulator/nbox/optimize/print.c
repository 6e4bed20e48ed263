/* See print.h. */
#include "nbox/optimize/print.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/units.h"
#include "nbox/json/json-file.h"

#define MS 1e6
#define MIB 1048576.
#define NEARLY 1.002 /* as good */

static uint64_t bytes_of(const struct optimized *o, const struct bucket *b)
{
	uint64_t bytes = 0;

	for (uint32_t i = b->first; i < b->end; i++)
		bytes += o->gradients.bytes[i];
	return bytes;
}

static const struct buckets_plan *plan_of(const struct optimized *o)
{
	return &o->rows[o->planned].plan;
}

static void print_head(const struct optimize_asked *a, const struct optimized *o, FILE *to)
{
	char text[32], word[256];

	if (a->run) {
		const struct found_times *t = &o->found.times[o->found.n_timed]; /* medians */

		snprintf(word, sizeof(word), "%s", a->run);
		fprintf(to,
			"%s: %u all-reduces a step of rank %u, %u steps of %.3f ms; the last is ready after "
			"%.3f ms\n",
			plain_text(word), o->found.n, o->found.rank, o->found.n_timed,
			t->step_ns / MS, t->ready[o->found.n - 1] / MS);
	} else {
		fprintf(to, "%u gradients; the last is ready after %.3f ms\n", o->gradients.job.n,
			o->gradients.job.end / MS);
	}
	if (o->way.parts)
		fprintf(to, "   memory         %.2f GB%s%s\n", o->way.bytes / 1e9,
			o->way.recomputes ? ", recomputed" : "",
			o->way.parts > 1 ? ", accumulated" : "");
	if (o->way.parts > 1)
		fprintf(to, "   parts          %u: only the last one's gradients are reduced\n",
			o->way.parts);
	if (a->bytes_per_ns > 0)
		fprintf(to, "   all-reduce     %s + bytes / %.4g GB/s\n",
			units_print_time(a->alpha_ns, text, sizeof(text)), a->bytes_per_ns);
}

static void print_table(const struct optimized *o, FILE *to)
{
	bool has_retimed = o->rows[o->planned].retimed_ns > 0;

	fprintf(to, "%40s  %7s  %12s%s\n", "plan", "buckets", "step, ms",
		has_retimed ? "  re-timed, ms" : "");
	for (uint32_t i = 0; i < o->n_rows; i++) {
		const struct optimize_row *r = &o->rows[i];

		fprintf(to, "%40s  %7u  %12.3f", r->name, r->plan.n, r->ns / MS);
		if (r->why_not)
			fprintf(to, "  not re-timed: %s", r->why_not);
		else if (has_retimed)
			fprintf(to, "  %12.3f", r->retimed_ns / MS);
		fprintf(to, "%s\n", i == o->planned ? "  <- the plan" : "");
	}
}

/* How many gradients are in each. */
static void print_sizes(const struct optimized *o, FILE *to)
{
	for (uint32_t k = 0; k < plan_of(o)->n; k++)
		fprintf(to, "%s%u", k ? "," : "",
			plan_of(o)->list[k].end - plan_of(o)->list[k].first);
	fputs("\n", to);
}

static void print_gain(const struct optimized *o, FILE *to)
{
	const struct optimize_row *was = &o->rows[o->before], *is = &o->rows[o->planned];
	bool is_retimed = was->retimed_ns > 0 && is->retimed_ns > 0;
	double from = is_retimed ? was->retimed_ns : was->ns,
	       now = is_retimed ? is->retimed_ns : is->ns;

	fprintf(to, "   gain           %.3f ms of %.3f, %.1f %%, %s\n", (from - now) / MS,
		from / MS, 100 * (from - now) / from,
		is_retimed ? "re-timed" : "by the recurrence q = max(p, q + lead) + t(bytes)");
}

static bool is_as_good(const struct optimized *o, uint32_t row)
{
	const struct optimize_row *r = &o->rows[row], *plan = &o->rows[o->planned];

	return (r->retimed_ns > 0) == (plan->retimed_ns > 0) &&
	       optimize_step_ns(r) < optimize_step_ns(plan) * NEARLY;
}

void optimize_print(const struct optimize_asked *a, const struct optimized *o, FILE *to)
{
	uint32_t n_pieces = 0;

	print_head(a, o, to);
	print_table(o, to);
	print_gain(o, to);
	if (is_as_good(o, o->before) && o->gradients.recorded)
		fputs("   verdict        the buckets as recorded are as good: leave them\n", to);
	else if (is_as_good(o, o->fixed))
		fputs("   verdict        DDP's own buckets are as good: leave them\n", to);
	else if (is_as_good(o, o->ddp) && o->planned != o->ddp)
		fprintf(to, "   verdict        bucket_cap_mb=%g is as good\n",
			(double)o->cap / MIB);
	fputs("   gradients      ", to);
	print_sizes(o, to);
	for (uint32_t k = 0; k < plan_of(o)->n; k++)
		n_pieces += plan_of(o)->list[k].pieces > 1;
	if (n_pieces)
		fprintf(to, "   pieces         %u of the buckets, by --json\n", n_pieces);
	if (plan_of(o)->n_fused)
		fprintf(to, "   fused ops      %u, by --json\n", plan_of(o)->n_fused);
	fprintf(to, "   PyTorch        DDP(..., bucket_cap_mb=%g): %.3f ms\n", (double)o->cap / MIB,
		optimize_step_ns(&o->rows[o->ddp]) / MS);
	fprintf(to,
		"   or             torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = %llu; DDP(...): %.3f ms\n",
		(unsigned long long)o->first_cap, optimize_step_ns(&o->rows[o->first]) / MS);
	fputs("   PyTorch 2.11   DDP(..., bucket_cap_mb_list=[", to);
	for (uint32_t k = 0; k < plan_of(o)->n; k++)
		fprintf(to, "%s%.15g", k ? ", " : "",
			(double)bytes_of(o, &plan_of(o)->list[k]) / MIB);
	fprintf(to, "]): the plan, %.3f ms\n   stepper        buckets ",
		optimize_step_ns(&o->rows[o->planned]) / MS);
	print_sizes(o, to);
	if (o->found.has_no_edges)
		fputs("   warning: nbox did not see when the gradients were ready; when their "
		      "all-reduces began stands for it, which is too late where those waited for "
		      "each other\n",
		      to);
	if (a->run && !a->layers)
		fputs("   note: a record shows whole buckets. One of a run with small ones (PyTorch: "
		      "bucket_cap_mb=1e-6; stepper: bucket 1B) is the finest; --layers FILE says what "
		      "was in each\n",
		      to);
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static json_t *mapping(const struct optimized *o)
{
	json_t *list = json_array();

	for (uint32_t k = 0; list && k < plan_of(o)->n; k++) {
		CLEANUP(freep) char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		for (uint32_t i = plan_of(o)->list[k].first; f && i < plan_of(o)->list[k].end; i++)
			fprintf(f, "%s%u", i > plan_of(o)->list[k].first ? "+" : "", i);
		if (f)
			fclose(f);
		json_array_append_new(list, json_string(text ? text : ""));
	}
	return list;
}

int optimize_write_mapping(const struct optimized *o, const char *path, struct err *err)
{
	return json_file_write(json_pack("{so}", "mapping", mapping(o)), path, err);
}

static json_t *rows_json(const struct optimized *o)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < o->n_rows; i++) {
		const struct optimize_row *r = &o->rows[i];
		json_t *row = json_pack("{ss, sI, sf, sb}", "plan", r->name, "buckets",
					(json_int_t)r->plan.n, "step_ms", r->ns / MS, "is_plan",
					(int)(i == o->planned));

		if (r->retimed_ns > 0)
			json_object_set_new(row, "retimed_ms", json_real(r->retimed_ns / MS));
		if (r->why_not)
			json_object_set_new(row, "not_retimed", json_string(r->why_not));
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *gradients_json(const struct optimized *o)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < o->gradients.job.n; i++)
		json_array_append_new(list, json_pack("{sI, ss, sI, sf, sb}", "gradient",
						      (json_int_t)i, "name", o->gradients.names[i],
						      "bytes", (json_int_t)o->gradients.bytes[i],
						      "ready_ms", o->gradients.ready[i] / MS,
						      "op_is_fused", (int)plan_of(o)->is_fused[i]));
	return list;
}

static json_t *log_json(const struct optimized *o)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < o->gradients.job.n; i++) {
		const struct buckets_decision *d = &o->log[i];

		json_array_append_new(list,
				      json_pack("{sI, sf, sf, sf, sf, sb, sb}", "gradient",
						(json_int_t)d->gradient, "sync_before_ends_ms",
						d->q_before / MS, "ready_ms", d->p / MS,
						"sync_fused_ms", d->t_fused / MS, "sync_ms",
						d->t / MS, "fuses", (int)d->fuses, "fuses_ops",
						(int)d->fuses_ops));
	}
	return list;
}

static json_t *buckets_json(const struct optimized *o)
{
	json_t *list = json_array();

	for (uint32_t k = 0; list && k < plan_of(o)->n; k++) {
		const struct bucket *b = &plan_of(o)->list[k];

		json_array_append_new(list,
				      json_pack("{sI, sI, sI, sI}", "first", (json_int_t)b->first,
						"gradients", (json_int_t)(b->end - b->first),
						"bytes", (json_int_t)bytes_of(o, b), "pieces",
						(json_int_t)b->pieces));
	}
	return list;
}

int optimize_write_json(const struct optimize_asked *a, const struct optimized *o, const char *path,
			struct err *err)
{
	json_t *all =
		json_pack("{so, so, so, so, so, s{sf, sI}, sf, sf, sI}", "mapping", mapping(o),
			  "buckets", buckets_json(o), "plans", rows_json(o), "gradients",
			  gradients_json(o), "search", log_json(o), "ddp", "bucket_cap_mb",
			  (double)o->cap / MIB, "first_bucket_bytes", (json_int_t)o->first_cap,
			  "before_ms", optimize_step_ns(&o->rows[o->before]) / MS, "after_ms",
			  optimize_step_ns(&o->rows[o->planned]) / MS, "sizes_asked",
			  (json_int_t)o->n_asked);

	if (all && a->run)
		json_object_set_new(all, "run", json_string(a->run));
	return json_file_write(all, path, err);
}
