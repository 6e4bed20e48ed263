/* See print.h. */
#include "nbox/pipe/print.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/topo/words.h"

static const char *ns_text(double ns, char *buf, size_t size)
{
	return units_print_time(ns, buf, size);
}
#define NS(ns) ns_text(ns, (char[32]){""}, 32)
#define BYTES(n) units_print_bytes((uint64_t)llround(n), (char[32]){""}, 32)

static double of_signal(const struct pipeline_row *r)
{
	return r->times.end_ns > 0 ? r->signal_ns / r->times.end_ns : 1;
}

/* --- text ------------------------------------------------------------------------------------ */

static bool are_alike(const struct pipeline *p)
{
	const struct pipe_stage *first = &p->stages[0];

	for (uint32_t i = 1; i < p->n_stages; i++) {
		const struct pipe_stage *s = &p->stages[i];

		if (s->forward_ns != first->forward_ns || s->backward_ns != first->backward_ns ||
		    s->weights_ns != first->weights_ns ||
		    s->to_previous_ns != p->stages[1].to_previous_ns ||
		    p->stages[i - 1].to_next_ns != first->to_next_ns ||
		    p->stages[i - 1].to_next_ns != s->to_previous_ns)
			return false;
	}
	return true;
}

static void print_stage(const struct pipeline *p, uint32_t i, FILE *to)
{
	const struct pipe_stage *s = &p->stages[i];

	fprintf(to, "forward %s, backward %s", NS(s->forward_ns), NS(s->backward_ns));
	if (s->weights_ns > 0)
		fprintf(to, " (weights %s)", NS(s->weights_ns));
	if (i + 1 < p->n_stages)
		fprintf(to, ", message to the next %s", NS(s->to_next_ns));
	if (i > 0)
		fprintf(to, ", to the one before %s", NS(s->to_previous_ns));
	fprintf(to, "\n");
}

static void print_question(const struct pipeline *p, FILE *to)
{
	const struct pipe_stage *s = &p->stages[0];

	fprintf(to, "-- nbox pipe: %u stages, %u micro-batches", p->n_stages, p->n_micro);
	if (!are_alike(p)) {
		fprintf(to, "\n");
		for (uint32_t i = 0; i < p->n_stages; i++) {
			fprintf(to, "   stage %-3u      ", i);
			print_stage(p, i, to);
		}
	} else {
		fprintf(to, ": forward %s, backward %s", NS(s->forward_ns), NS(s->backward_ns));
		if (s->weights_ns > 0)
			fprintf(to, " (weights %s)", NS(s->weights_ns));
		if (p->n_stages > 1)
			fprintf(to, ", a message %s", NS(s->to_next_ns));
		fprintf(to, "\n");
	}
}

static void name_of(const struct pipeline_row *r, char *buf, size_t size)
{
	static const char *const blocked[PIPE_OVERLAPS] = {"", ", sender blocked",
							   ", both blocked"};

	snprintf(buf, size, "%s%s%s", pipeline_schedule(r->job.schedule), blocked[r->job.overlap],
		 r->is_delayed ? ", weights delayed" : "");
}

/* "4 3 2 1", of many stages "15 13 .. 1". */
static void peaks_of(const struct pipeline_row *r, char *buf, size_t size)
{
	uint32_t n = r->job.n_stages;
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < n && at < size; i++) {
		if (n > 8 && i == 2)
			at += (size_t)snprintf(buf + at, size - at, " ..");
		if (n <= 8 || i < 2 || i + 1 == n)
			at += (size_t)snprintf(buf + at, size - at, "%s%u", i ? " " : "",
					       pipe_peak(&r->job, i));
	}
}

static void print_rows(const struct pipeline_answer *a, FILE *to)
{
	bool has_memory = a->of->activation_bytes > 0 || a->of->state_bytes > 0;
	char name[64], peaks[64];

	fprintf(to, "   %-22s %12s %7s %12s %9s  %s%s\n", "schedule", "iteration", "bubble",
		"period", "of Signal", has_memory ? "stage 0 keeps  " : "", "activations by stage");
	for (size_t i = 0; i < a->n; i++) {
		const struct pipeline_row *r = &a->rows[i];

		name_of(r, name, sizeof(name));
		peaks_of(r, peaks, sizeof(peaks));
		fprintf(to, "   %-22s %12s %5.1f %% %12s %7.1f %%  ", name,
			NS(r->times.end_ns + a->of->update_ns), 100 * r->times.bubble,
			NS(r->times.period_ns), 100 * of_signal(r));
		if (has_memory)
			fprintf(to, "%13s  ",
				BYTES(a->of->state_bytes +
				      a->of->activation_bytes * pipe_peak(&r->job, 0)));
		fprintf(to, "%s\n", peaks);
	}
}

static void print_network(const struct pipeline_answer *a, FILE *to)
{
	char rate[32];

	if (a->slower <= 0)
		return;
	fprintf(to, "   eager is within %.0f %% of Signal with messages up to %.2f times as long",
		100 * (1 - PIPELINE_SHARE), a->slower);
	if (a->least_bandwidth > 0)
		fprintf(to, ": from %s on", topo_bits(a->least_bandwidth, rate, sizeof(rate)));
	fprintf(to, "\n");
}

static void print_record(const struct pipeline_answer *a, FILE *to)
{
	const struct pipeline *p = a->of;

	if (!p->is_recorded)
		return;
	fprintf(to, "   recorded       %s", pipeline_schedule(p->recorded));
	if (p->recorded_ns > 0)
		fprintf(to, ", an iteration %s", NS(p->recorded_ns));
	for (size_t i = 0; i < a->n && p->recorded_ns > 0; i++) {
		const struct pipeline_row *r = &a->rows[i];

		if (r->job.schedule == p->recorded && r->job.overlap == PIPE_NOBODY &&
		    !r->is_delayed)
			fprintf(to, "; the table has %+.1f %%",
				100 * ((r->times.end_ns + p->update_ns) / p->recorded_ns - 1));
	}
	fprintf(to, "\n");
	if (p->notes[0])
		fprintf(to, "   warning: %s\n", p->notes);
}

void pipeline_print(const struct pipeline_answer *a, FILE *to)
{
	print_question(a->of, to);
	print_rows(a, to);
	print_network(a, to);
	print_record(a, to);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static json_t *stages_json(const struct pipeline *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_stages; i++) {
		const struct pipe_stage *s = &p->stages[i];

		json_array_append_new(list,
				      json_pack("{s:f, s:f, s:f, s:f, s:f, s:I}", "forward_ns",
						s->forward_ns, "backward_ns", s->backward_ns,
						"weights_ns", s->weights_ns, "to_next_ns",
						s->to_next_ns, "to_previous_ns", s->to_previous_ns,
						"message_bytes", (json_int_t)p->message_bytes[i]));
	}
	return list;
}

static json_t *row_json(const struct pipeline *p, const struct pipeline_row *r)
{
	json_t *peaks = json_array(), *bytes = json_array(), *o;

	for (uint32_t i = 0; i < p->n_stages; i++) {
		uint32_t peak = pipe_peak(&r->job, i);

		json_array_append_new(peaks, json_integer(peak));
		json_array_append_new(bytes,
				      json_real(p->state_bytes + p->activation_bytes * peak));
	}
	o = json_pack("{s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:o}", "schedule",
		      pipeline_schedule(r->job.schedule), "overlap",
		      pipeline_overlap(r->job.overlap), "is_delayed", r->is_delayed, "makespan_ns",
		      r->times.end_ns, "iteration_ns", r->times.end_ns + p->update_ns, "period_ns",
		      r->times.period_ns, "bubble", r->times.bubble, "of_signal", of_signal(r),
		      "activations", peaks);
	if (p->activation_bytes > 0 || p->state_bytes > 0)
		json_object_set_new(o, "bytes", bytes);
	else
		json_decref(bytes);
	return o;
}

json_t *pipeline_json(const struct pipeline_answer *a)
{
	json_t *rows = json_array(), *o;
	const struct pipeline *p = a->of;

	for (size_t i = 0; i < a->n; i++)
		json_array_append_new(rows, row_json(p, &a->rows[i]));
	o = json_pack("{s:i, s:f, s:o, s:o}", "micro", p->n_micro, "update_ns", p->update_ns,
		      "stages", stages_json(p), "rows", rows);
	if (!o)
		return NULL;
	if (a->slower > 0)
		json_object_set_new(o, "messages_may_be_slower", json_real(a->slower));
	if (a->least_bandwidth > 0)
		json_object_set_new(o, "least_bandwidth_bytes_per_ns",
				    json_real(a->least_bandwidth));
	if (p->is_recorded)
		json_object_set_new(o, "recorded",
				    json_pack("{s:s, s:f, s:s}", "schedule",
					      pipeline_schedule(p->recorded), "iteration_ns",
					      p->recorded_ns, "notes", p->notes));
	return o;
}
