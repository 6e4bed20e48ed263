/* See summary.h. */
#include "nbox/report/summary.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "nbox/report/classes.h"
#include "nbox/report/comms.h"
#include "nbox/report/ways.h"
#include "topology/topology.h"
#include "wire/wire.h"

static void print_steps(const struct report *r, FILE *to)
{
	if (r->n_steps == 0) {
		fprintf(to, "   steps          none: %s\n", r->steps_how);
		return;
	}
	fprintf(to,
		"   steps          %llu of %llu op%s: mean %.3f ms, p50 %.3f ms, p95 %.3f ms "
		"(%llu timed",
		(unsigned long long)r->n_steps, (unsigned long long)r->ops_per_step,
		r->ops_per_step == 1 ? "" : "s", r->step_ns.mean / 1e6, r->step_ns.p50 / 1e6,
		r->step_ns.p95 / 1e6, (unsigned long long)r->step_ns.n);
	if (r->n_warm_up == 1)
		fprintf(to, "; the first left out as warm-up");
	else if (r->n_warm_up)
		fprintf(to, "; the first %llu left out as warm-up",
			(unsigned long long)r->n_warm_up);
	fprintf(to, ")\n   found as       %s%s%s\n", r->steps_how,
		r->steps_rule[0] ? ": --steps " : "", r->steps_rule);
}

static void print_lateness(const struct report *r, FILE *to)
{
	const struct report_stat *t = &r->lateness_ns;
	char a[32], b[32], c[32], early[64] = "none early";

	if (r->n_early)
		snprintf(early, sizeof(early), "%llu EARLY, by up to %s",
			 (unsigned long long)r->n_early, units_print_time(-t->min, a, sizeof(a)));
	fprintf(to, "   lateness       p50 %s, p99 %s, max %s (of %llu released gates; %s)\n",
		units_print_time(t->p50, a, sizeof(a)), units_print_time(t->p99, b, sizeof(b)),
		units_print_time(t->max, c, sizeof(c)), (unsigned long long)t->n, early);
	if (r->end.clock_error_ns)
		fprintf(to,
			"   clocks         of the real ranks on other clocks: within %s of nboxd's\n",
			units_print_time((double)r->end.clock_error_ns, a, sizeof(a)));
}

/* Times above are virtual, lateness is the wall clock's. */
static void print_wall_clock(const struct report *r, const char *per, FILE *to)
{
	double percent = r->virtual_ns > 0 ? (r->wall_ns - r->virtual_ns) / r->virtual_ns * 100 : 0;

	fprintf(to,
		"   wall clock     %.3f ms %s (%+.1f %%); the times above are the virtual "
		"cluster's\n",
		r->wall_ns / 1e6, per, percent);
}

/* Less than a microsecond is not worth a line. */
static void print_contention(const struct report *r, const char *per, FILE *to)
{
	char a[32];

	if (r->shared_ns >= 1e3 || r->queued_ns >= 1e3)
		fprintf(to,
			"   contention     ops waited %.3f ms %s for links that other ops used, %.3f ms for ops of "
			"their own communicator\n",
			r->shared_ns / 1e6, per, r->queued_ns / 1e6);
	if (r->end.n_debts)
		fprintf(to,
			"   debts          %llu op%s ended later than the job was told, by %s in all: another op had "
			"taken their links; later times count it\n",
			(unsigned long long)r->end.n_debts, r->end.n_debts == 1 ? "" : "s",
			units_print_time((double)r->end.debt_ns, a, sizeof(a)));
}

/* What xmesh has planned. */
static void print_resharding(const struct report *r, FILE *to)
{
	if (!r->n_planned && !r->n_left_alone)
		return;
	fprintf(to,
		"   resharding     %llu group%s of calls of all real ranks took the plan's times",
		(unsigned long long)r->n_planned, r->n_planned == 1 ? "" : "s");
	if (r->n_assumed)
		fprintf(to,
			", %s of them *assumed*: equal messages of a rank as copies of one slice, other "
			"ranks' as other slices, beside other ops as if alone; tensor=, dtype=, src= and "
			"dst= say what they are",
			r->n_assumed == r->n_planned ? "all" : "some");
	if (r->n_left_alone)
		fprintf(to, "; %llu %s not as declared and kept the times of plain sends",
			(unsigned long long)r->n_left_alone, r->n_left_alone == 1 ? "was" : "were");
	fputc('\n', to);
}

/* What --alltoall said. */
static void print_alltoall(const struct report *r, FILE *to)
{
	if (!r->n_by_matrix && !r->n_not_by_matrix)
		return;
	fprintf(to,
		"   all-to-all     %llu group%s of calls of all real ranks took the matrix's time",
		(unsigned long long)r->n_by_matrix, r->n_by_matrix == 1 ? "" : "s");
	if (r->n_not_by_matrix)
		fprintf(to, "; %llu of as many ranks did not match it and kept %s own",
			(unsigned long long)r->n_not_by_matrix,
			r->n_not_by_matrix == 1 ? "its" : "their");
	fputc('\n', to);
}

static void print_expects(const struct report *r, FILE *to)
{
	for (uint32_t i = 0; i < r->n_expects; i++) {
		const struct report_expect *x = &r->expects[i];

		fprintf(to, "   %-14s %s: %s", i ? "" : "expected", x->text,
			x->is_met        ? "yes"
			: x->is_left_out ? "not judged"
					 : "NO");
		if (x->is_left_out)
			fputs(", no job has ended here\n", to);
		else if (isnan(x->got))
			fputs(", the run has no such figure\n", to);
		else
			fprintf(to, ", %.6g\n", x->got);
	}
}

/* What was assumed or extrapolated is a warning. */
static void print_counts(const struct report *r, FILE *to)
{
	const char *title = "counts";

	for (uint32_t i = 0; i < r->n_counts; i++) {
		const char *how = r->counts[i].how;

		if (strcmp(how, "fitted") != 0 && strcmp(how, "declared") != 0)
			continue;
		fprintf(to, "   %-14s %s\n", title, r->counts[i].text);
		title = "";
	}
}

static void print_ops(const struct report *r, FILE *to)
{
	const char *per = r->n_steps ? "a step" : "in all";
	char a[32];

	fprintf(to, "   %-14s %8s %12s %14s %14s\n", "op (rank's own)", "calls", "bytes/call",
		"modelled/call", "injected/call");
	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		const struct report_kind *c = &r->kinds[k];
		double n = (double)c->n_ops;

		if (c->n_ops == 0)
			continue;
		fprintf(to, "   %-14s %9llu %12s %11.3f us %11.3f us\n", coll_kind_name(k),
			(unsigned long long)c->n_ops,
			units_print_bytes(c->bytes / c->n_ops, a, sizeof(a)), c->model_ns / n / 1e3,
			c->injected_ns / n / 1e3);
	}
	print_steps(r, to);
	fprintf(to, "   communication  modelled %.3f ms, exposed %s%.3f ms %s\n",
		r->modelled_ns / 1e6, r->is_exposed_bound ? "at most " : "", r->exposed_ns / 1e6,
		per);
	if (r->is_exposed_bound)
		fprintf(to,
			"                  exposed is how long communication was under way: what "
			"the job waited for was not seen\n");
	print_contention(r, per, to);
	if (strstr(r->header.model, " + "))
		fprintf(to,
			"   what-ifs       injected %.3f ms %s, against the same run without them\n",
			r->injected_ns / 1e6, per);
	print_resharding(r, to);
	print_alltoall(r, to);
	if (!r->header.retimed_of[0]) {
		print_wall_clock(r, per, to);
		print_lateness(r, to);
	}
	report_comms_print(r, to);
	report_classes_print(r, to);
}

void report_print(const struct report *r, FILE *to)
{
	const struct record_header *h = &r->header;
	const struct topology world = {.n_nodes = h->n_nodes, .gpus_per_node = h->gpus_per_node};
	char text[64], values[128];

	fputc('\n', to);
	if (r->lost[0])
		fprintf(to, "-- nbox: NOT WHOLE: %s\n", r->lost);
	if (r->is_empty) {
		fprintf(to, "-- nbox: %s\n", r->warnings[0]);
		print_expects(r, to);
		return;
	}
	if (h->retimed_of[0])
		fprintf(to, "-- nbox: re-timed from %s, not run:\n", h->retimed_of);
	fprintf(to, "-- nbox: %s, %u real; %sexchange %s; model %s; seed %llu\n",
		topology_print(&world, text, sizeof(text)), h->n_real,
		report_is_full(h) ? "nccl full; " : "", wire_exchange_name(h->exchange), h->model,
		(unsigned long long)h->seed);
	if (r->n_ops)
		print_ops(r, to);
	print_counts(r, to);
	if (r->network[0])
		fprintf(to, "   network        %s\n", r->network);
	if (r->decided_by[0])
		fprintf(to, "   decided by     %s\n", r->decided_by);
	fprintf(to, "   nccl           %s\n", report_way(h));
	if (r->took[0])
		fprintf(to, "   NCCL took      %s\n", r->took);
	if (r->messages[0])
		fprintf(to, "   its messages   %s\n", r->messages);
	if (report_is_none(r))
		fprintf(to,
			"   model          none: the virtual network takes no time%s; `nbox models` lists others\n",
			h->model[4] ? " but what what-ifs add" : "");
	report_values(r, values, sizeof(values));
	fprintf(to, "   data           %s%s%s%s%s%s\n", wire_data_name(h->data),
		h->data_for[0] ? " (" : "", h->data_for, h->data_for[0] ? ")" : "",
		values[0] ? ": " : "", values);
	if (r->payload_memory[0])
		fprintf(to, "   payload        in memory of the %s\n", r->payload_memory);
	if (r->device[0])
		fprintf(to, "   device         %s\n", r->device);
	else if (r->n_ops && !r->is_exposed_bound) /* shim/gate/cuda-gate.c, NAP_BUSY_NS */
		fprintf(to,
			"   places         in streams are seen by polling, up to 100 us late\n");
	print_expects(r, to);
	for (uint32_t i = 0; i < r->n_warnings; i++)
		fprintf(to, "   warning: %s\n", r->warnings[i]);
}

static json_t *kinds_json(const struct report *r)
{
	json_t *list = json_array();

	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		const struct report_kind *c = &r->kinds[k];

		if (c->n_ops == 0)
			continue;
		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:I, s:f, s:f}", "op",
						coll_kind_name(k), "calls", (json_int_t)c->n_ops,
						"bytes", (json_int_t)c->bytes, "modelled_ms",
						c->model_ns / 1e6, "injected_ms",
						c->injected_ns / 1e6));
	}
	return list;
}

static json_t *counts_json(const struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->n_counts; i++) {
		const struct report_counts *c = &r->counts[i];

		json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:s, s:s}", "op",
						      coll_kind_name(c->kind), "ops",
						      (json_int_t)c->n_ops, "how", c->how, "law",
						      c->law, "text", c->text));
	}
	return list;
}

static json_t *expects_json(const struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->n_expects; i++) {
		const struct report_expect *x = &r->expects[i];

		if (x->is_left_out)
			continue;
		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:o}", "text", x->text, "met",
						(int)x->is_met, "got",
						isnan(x->got) ? json_null() : json_real(x->got)));
	}
	return list;
}

static json_t *steps_json(const struct report *r)
{
	const struct report_stat *t = &r->step_ns;
	json_t *o = json_pack("{s:I, s:s}", "count", (json_int_t)r->n_steps, "how", r->steps_how);

	if (o && r->n_steps)
		json_object_update_new(
			o, json_pack("{s:s, s:I, s:I, s:I, s:{s:f, s:f, s:f, s:f, s:f}}", "rule",
				     r->steps_rule, "warm_up", (json_int_t)r->n_warm_up, "timed",
				     (json_int_t)t->n, "ops", (json_int_t)r->ops_per_step, "ms",
				     "mean", t->mean / 1e6, "p25", t->p25 / 1e6, "p50",
				     t->p50 / 1e6, "p75", t->p75 / 1e6, "p95", t->p95 / 1e6));
	return o;
}

struct json_t *report_json(const struct report *r, int exit_code)
{
	const struct record_header *h = &r->header;
	json_t *warnings = json_array(), *o;
	char values[128];

	for (uint32_t i = 0; i < r->n_warnings; i++)
		json_array_append_new(warnings, json_string(r->warnings[i]));
	o = json_pack(
		"{s:i, s:i, s:i, s:i, s:I, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:f, s:f,"
		" s:{s:f, s:f, s:f, s:f}, s:I, s:{s:I, s:f}, s:f, s:{s:I, s:I, s:s}, s:s, s:s, s:s, s:s, s:I, s:o, s:o}",
		"world_size", (int)h->world_size, "nodes", (int)h->n_nodes, "gpus_per_node",
		(int)h->gpus_per_node, "real_ranks", (int)h->n_real, "ops", (json_int_t)r->n_ops,
		"ops_by_kind", kinds_json(r), "steps", steps_json(r), "virtual_ms",
		r->virtual_ns / 1e6, "wall_ms", r->wall_ns / 1e6, "modelled_ms",
		r->modelled_ns / 1e6, "shared_ms", r->shared_ns / 1e6, "queued_ms",
		r->queued_ns / 1e6, "exposed_ms", r->exposed_ns / 1e6, "exposed_is_bound",
		(int)r->is_exposed_bound, "injected_ms", r->injected_ns / 1e6, "total_injected_ms",
		r->total_injected_ns / 1e6, "lateness_us", "min", r->lateness_ns.min / 1e3, "p50",
		r->lateness_ns.p50 / 1e3, "p99", r->lateness_ns.p99 / 1e3, "max",
		r->lateness_ns.max / 1e3, "early_gates", (json_int_t)r->n_early, "debts", "count",
		(json_int_t)r->end.n_debts, "ms", (double)r->end.debt_ns / 1e6, "clock_error_us",
		(double)r->end.clock_error_ns / 1e3, "lost", "ops", (json_int_t)r->end.n_lost,
		"notes", (json_int_t)r->end.n_lost_notes, "why",
		r->end.lost_errno ? strerror((int)r->end.lost_errno) : "", "exchange",
		wire_exchange_name(h->exchange), "data", wire_data_name(h->data), "data_for",
		h->data_for, "model", h->model, "seed", (json_int_t)h->seed, "communicators",
		report_comms_json(r), "warnings", warnings);
	if (o)
		json_object_update_new(o, json_pack("{s:s, s:s}", "nccl", wire_nccl_name(h->nccl),
						    "way", report_way(h)));
	if (o && r->took[0])
		json_object_set_new(o, "nccl_took", json_string(r->took));
	if (o && r->messages[0])
		json_object_set_new(o, "nccl_messages", json_string(r->messages));
	if (o && report_values(r, values, sizeof(values))[0])
		json_object_set_new(o, "values", json_string(values));
	if (o && r->n_classes)
		json_object_set_new(o, "classes", report_classes_json(r));
	if (o && r->network[0])
		json_object_set_new(o, "network", json_string(r->network));
	if (o && r->device[0])
		json_object_set_new(o, "device", json_string(r->device));
	if (o && r->decided_by[0])
		json_object_set_new(o, "decided_by", json_string(r->decided_by));
	if (o && (r->n_planned || r->n_left_alone))
		json_object_set_new(o, "resharding",
				    json_pack("{s:I, s:I, s:I}", "planned",
					      (json_int_t)r->n_planned, "assumed",
					      (json_int_t)r->n_assumed, "left_alone",
					      (json_int_t)r->n_left_alone));
	if (o && (r->n_by_matrix || r->n_not_by_matrix))
		json_object_set_new(o, "alltoall",
				    json_pack("{s:I, s:I}", "by_matrix", (json_int_t)r->n_by_matrix,
					      "left_alone", (json_int_t)r->n_not_by_matrix));
	if (o && r->payload_memory[0])
		json_object_set_new(o, "payload_memory", json_string(r->payload_memory));
	if (o && r->n_expects)
		json_object_set_new(o, "expected", expects_json(r));
	if (o && r->n_counts)
		json_object_set_new(o, "counts", counts_json(r));
	if (o && h->retimed_of[0])
		json_object_set_new(o, "retimed_of", json_string(h->retimed_of));
	if (o && exit_code >= 0)
		json_object_set_new(o, "exit_code", json_integer(exit_code));
	return o;
}

int report_write_json(const struct report *r, int exit_code, const char *path, struct err *err)
{
	json_t *o = report_json(r, exit_code);
	struct stat st;
	int failed;

	if (!o)
		return err_set(err, ENOMEM, "%s: cannot build the summary", path);
	failed = json_dump_file(o, path, JSON_INDENT(2)) ? errno : 0;
	json_decref(o);
	if (failed && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path); /* half a summary is none */
	return failed ? err_set(err, failed, "%s: cannot be written: %s", path, strerror(failed))
		      : 0;
}
