/* Reports: see report.h. All times are taken from one rank, the lowest real one,
 * except lateness, which counts every gate of every rank. */
#include "cli/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/json-text.h"
#include "engine/solve.h"
#include "wire/wire.h"

#define PERIOD_MAX 65536 /* ops of an iteration */
#define SAMPLE_MAX 65536 /* ops looked at to find the period */

void report_warn(struct report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->n_warnings == REPORT_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(r->warnings[r->n_warnings++], sizeof(r->warnings[0]), fmt, ap);
	va_end(ap);
}

static int by_arrival(const void *pa, const void *pb)
{
	const struct record_row *a = pa, *b = pb;

	if (a->arrive_ns != b->arrive_ns)
		return a->arrive_ns < b->arrive_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static double quantile(const double *sorted, uint64_t n, double q)
{
	uint64_t i = (uint64_t)ceil(q * (double)n);

	return sorted[i == 0 ? 0 : i - 1];
}

/* Sorts @values. */
static void stat_of(double *values, uint64_t n, struct report_stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (n == 0)
		return;
	qsort(values, n, sizeof(*values), by_value);
	for (uint64_t i = 0; i < n; i++)
		ret->mean += values[i] / (double)n;
	ret->n = n;
	ret->p50 = quantile(values, n, 0.50);
	ret->p95 = quantile(values, n, 0.95);
	ret->p99 = quantile(values, n, 0.99);
	ret->max = values[n - 1];
}

uint64_t report_period(const uint64_t *sig, uint64_t n, uint64_t *ret_first,
		       uint64_t *ret_n_periods)
{
	uint64_t sample = n < SAMPLE_MAX ? n : SAMPLE_MAX, best = 0, best_run = 0, best_first = 0;

	for (uint64_t p = 1; p <= sample / 3 && p <= PERIOD_MAX; p++) {
		uint64_t run = 0;

		/* the repeating part covers the middle of any run worth speaking of */
		if (sig[sample / 2] != sig[sample / 2 - p])
			continue;
		for (uint64_t i = p; i < sample; i++) {
			run = sig[i] == sig[i - p] ? run + 1 : 0;
			/* a multiple of the period is no better than the period */
			if (run + p >= 3 * p && run + p > best_run + best) {
				best = p;
				best_run = run + p;
				best_first = i + 1 - run - p;
			}
		}
	}
	if (best == 0)
		return 0;
	uint64_t end = best_first + best;

	while (end < n && sig[end] == sig[end - best])
		end++;
	*ret_first = best_first;
	*ret_n_periods = (end - best_first) / best;
	return best;
}

double report_exposed(const struct record_row *rows, uint64_t n)
{
	uint64_t last_release = 0;
	double exposed = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t arrive = rows[i].arrive_ns;

		if (rows[i].release_ns > last_release)
			last_release = rows[i].release_ns;
		if (last_release <= arrive)
			continue;
		if (i + 1 == n || rows[i + 1].arrive_ns >= last_release)
			exposed += (double)(last_release - arrive);
	}
	return exposed;
}

static uint64_t signature_of(const struct record_row *r)
{
	uint64_t h = r->bytes * UINT64_C(0x9e3779b97f4a7c15);

	h ^= ((uint64_t)r->comm << 32 | (uint64_t)r->kind << 8 | r->dtype) *
	     UINT64_C(0xc2b2ae3d27d4eb4f);
	return h ^ h >> 29;
}

static int find_iterations(const struct record_row *rows, uint64_t n, struct report *rep)
{
	CLEANUP(freep) uint64_t *sig = calloc(n, sizeof(*sig));
	CLEANUP(freep) double *times = calloc(n, sizeof(*times));
	uint64_t first = 0, n_periods = 0, p, n_times = 0;

	if (!sig || !times)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		sig[i] = signature_of(&rows[i]);
	p = report_period(sig, n, &first, &n_periods);
	if (p == 0 || n_periods < 3)
		return 0;
	/* from the first op of one iteration to that of the next */
	for (uint64_t k = 0; k + 1 < n_periods; k++) {
		const struct record_row *a = &rows[first + k * p];

		times[n_times++] = (double)(a[p].arrive_ns - a->arrive_ns);
	}
	rep->ops_per_iteration = p;
	rep->n_iterations = n_periods;
	stat_of(times, n_times, &rep->iteration_ns);

	uint64_t n_rows = n_periods * p;

	for (uint64_t i = first; i < first + n_rows; i++) {
		rep->modelled_ns += rows[i].model_ns / (double)n_periods;
		rep->injected_ns += rows[i].injected_ns / (double)n_periods;
	}
	rep->exposed_ns = report_exposed(rows + first, n_rows) / (double)n_periods;
	return 0;
}

/* The model is none, with what-ifs or without. */
static bool is_none(const char *model)
{
	return strncmp(model, "none", 4) == 0 && (model[4] == 0 || model[4] == ' ');
}

static void add_warnings(const struct record *rec, const struct record_row *rows, uint64_t n,
			 struct report *rep)
{
	uint64_t below = 0, slow_local = 0, n_late = 0, late_sims = 0;

	if (rec->is_truncated)
		report_warn(rep, "the record ends in the middle of a row: nboxd did not end in good order");
	if (n == 0)
		return; /* report_outcome() says why */
	for (uint64_t i = 0; i < n; i++) {
		below += (rows[i].flags & RECORD_BELOW_BOUND) != 0;
		slow_local += rows[i].local_done_ns > rows[i].due_ns;
		if (rows[i].release_ns > rows[i].due_ns + 1000000) {
			n_late++;
			late_sims += rows[i].how == SOLVE_SIM;
		}
	}
	report_comms_warn(rep);
	if (below && !is_none(rec->header.model))
		report_warn(rep, "%llu of %llu modelled times are below bytes over bandwidth: the model "
			    "is too fast for this network", (unsigned long long)below,
			    (unsigned long long)n);
	if (slow_local)
		report_warn(rep, "in %llu of %llu ops the work among the real ranks took longer than the "
			    "modelled op: their times are this machine's, not the virtual cluster's",
			    (unsigned long long)slow_local, (unsigned long long)n);
	if (rep->n_iterations == 0 && n >= 6)
		report_warn(rep, "no repeating sequence of ops was found, so there are no iteration times");
	if (rep->lateness_ns.p99 > 1e6)
		report_warn(rep, "gates opened up to %.1f ms late (p99 %.1f ms): the machine was busy%s",
			    rep->lateness_ns.max / 1e6, rep->lateness_ns.p99 / 1e6,
			    2 * late_sims > n_late ? ", or nboxd, which simulates each message of these ops" : "");
}

int report_make(const struct record *rec, struct report *ret)
{
	CLEANUP(freep) struct record_row *rows = calloc(rec->n_rows + 1, sizeof(*rows));
	CLEANUP(freep) double *late = calloc(rec->n_rows + 1, sizeof(*late));
	uint64_t n = 0;
	int r;

	if (!rows || !late)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->header = rec->header;
	ret->rank = UINT32_MAX;
	for (uint64_t i = 0; i < rec->n_rows; i++)
		if (rec->rows[i].world_rank < ret->rank)
			ret->rank = rec->rows[i].world_rank;
	for (uint64_t i = 0; i < rec->n_rows; i++) {
		const struct record_row *row = &rec->rows[i];

		late[i] = row->release_ns > row->due_ns ? (double)(row->release_ns - row->due_ns) : 0;
		if (row->world_rank != ret->rank)
			continue;
		rows[n++] = *row;
		if (row->kind < COLL_KINDS) {
			struct report_kind *k = &ret->kinds[row->kind];

			k->n_ops++;
			k->bytes += row->bytes;
			k->model_ns += row->model_ns;
			k->injected_ns += row->injected_ns;
		}
		ret->total_injected_ns += row->injected_ns;
	}
	ret->n_ops = n;
	stat_of(late, rec->n_rows, &ret->lateness_ns);
	qsort(rows, n, sizeof(*rows), by_arrival);
	r = n ? find_iterations(rows, n, ret) : 0;
	if (r < 0)
		return r;
	if (ret->n_iterations == 0) {
		for (uint64_t i = 0; i < n; i++)
			ret->modelled_ns += rows[i].model_ns;
		ret->injected_ns = ret->total_injected_ns;
		ret->exposed_ns = report_exposed(rows, n);
	}
	r = report_comms(rec, ret);
	if (r < 0)
		return r;
	add_warnings(rec, rows, n, ret);
	return 0;
}

static void print_ops(const struct report *r, FILE *to)
{
	const char *per = r->n_iterations ? "an iteration" : "in all";
	char a[32], b[32];

	fprintf(to, "   %-14s %8s %12s %14s %14s\n", "op (rank's own)", "calls", "bytes/call",
		"modelled/call", "injected/call");
	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		const struct report_kind *c = &r->kinds[k];
		double n = (double)c->n_ops;

		if (c->n_ops == 0)
			continue;
		fprintf(to, "   %-14s %9llu %12s %11.3f us %11.3f us\n", coll_kind_name(k),
			(unsigned long long)c->n_ops, units_print_bytes(c->bytes / c->n_ops, a, sizeof(a)),
			c->model_ns / n / 1e3, c->injected_ns / n / 1e3);
	}
	if (r->n_iterations)
		fprintf(to, "   iterations     %llu of %llu ops: mean %.3f ms, p50 %.3f ms, p95 %.3f ms\n",
			(unsigned long long)r->n_iterations, (unsigned long long)r->ops_per_iteration,
			r->iteration_ns.mean / 1e6, r->iteration_ns.p50 / 1e6, r->iteration_ns.p95 / 1e6);
	fprintf(to, "   communication  modelled %.3f ms, exposed at most %.3f ms, injected %.3f ms %s\n",
		r->modelled_ns / 1e6, r->exposed_ns / 1e6, r->injected_ns / 1e6, per);
	fprintf(to, "   lateness       p50 %s, p99 %s", units_print_time(r->lateness_ns.p50, a, sizeof(a)),
		units_print_time(r->lateness_ns.p99, b, sizeof(b)));
	fprintf(to, ", max %s (of released gates; never early)\n",
		units_print_time(r->lateness_ns.max, a, sizeof(a)));
	report_comms_print(r, to);
}

void report_print(const struct report *r, FILE *to)
{
	const struct record_header *h = &r->header;

	fprintf(to, "\n-- nbox: %u ranks (%u nodes x %u), %u real; exchange %s; model %s; seed %llu\n",
		h->world_size, h->n_nodes, h->gpus_per_node, h->n_real,
		wire_exchange_name(h->exchange), h->model, (unsigned long long)h->seed);
	if (r->n_ops)
		print_ops(r, to);
	if (r->network[0])
		fprintf(to, "   network        %s\n", r->network);
	if (is_none(h->model))
		fprintf(to, "   model          none: the virtual network takes no time%s; `nbox models` lists others\n",
			h->model[4] ? " but what what-ifs add" : "");
	fprintf(to, "   data           %s%s%s%s\n", wire_data_name(h->data), h->data_for[0] ? " (" : "",
		h->data_for, h->data_for[0] ? ")" : "");
	if (r->payload_memory[0])
		fprintf(to, "   payload        in memory of the %s\n", r->payload_memory);
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
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:f, s:f}", "op", coll_kind_name(k),
						      "calls", (json_int_t)c->n_ops, "bytes",
						      (json_int_t)c->bytes, "modelled_ms",
						      c->model_ns / 1e6, "injected_ms",
						      c->injected_ns / 1e6));
	}
	return list;
}

int report_write_json(const struct report *r, int exit_code, const char *path, struct err *err)
{
	const struct record_header *h = &r->header;
	json_t *warnings = json_array(), *o;
	int failed;

	for (uint32_t i = 0; i < r->n_warnings; i++)
		json_array_append_new(warnings, json_text(r->warnings[i]));
	o = json_pack("{s:i, s:i, s:i, s:i, s:I, s:o, s:I, s:I, s:{s:f, s:f, s:f}, s:f, s:f, s:f, s:f,"
		      " s:{s:f, s:f, s:f}, s:s, s:s, s:s, s:s, s:I, s:o, s:o}",
		      "world_size", (int)h->world_size, "nodes", (int)h->n_nodes, "gpus_per_node",
		      (int)h->gpus_per_node, "real_ranks", (int)h->n_real, "ops", (json_int_t)r->n_ops,
		      "ops_by_kind", kinds_json(r), "iterations", (json_int_t)r->n_iterations,
		      "ops_per_iteration", (json_int_t)r->ops_per_iteration, "iteration_ms", "mean",
		      r->iteration_ns.mean / 1e6, "p50", r->iteration_ns.p50 / 1e6, "p95",
		      r->iteration_ns.p95 / 1e6, "modelled_ms", r->modelled_ns / 1e6, "exposed_ms",
		      r->exposed_ns / 1e6, "injected_ms", r->injected_ns / 1e6, "total_injected_ms",
		      r->total_injected_ns / 1e6, "lateness_us", "p50", r->lateness_ns.p50 / 1e3, "p99",
		      r->lateness_ns.p99 / 1e3, "max", r->lateness_ns.max / 1e3, "exchange",
		      wire_exchange_name(h->exchange), "data", wire_data_name(h->data), "data_for", h->data_for, "model", h->model,
		      "seed", (json_int_t)h->seed, "communicators", report_comms_json(r), "warnings", warnings);
	if (o && r->network[0])
		json_object_set_new(o, "network", json_text(r->network));
	if (o && r->payload_memory[0])
		json_object_set_new(o, "payload_memory", json_text(r->payload_memory));
	if (o && exit_code >= 0)
		json_object_set_new(o, "exit_code", json_integer(exit_code));
	if (!o)
		return err_set(err, ENOMEM, "%s: cannot build the summary (is the model's name UTF-8?)", path);
	failed = json_dump_file(o, path, JSON_INDENT(2));
	json_decref(o);
	return failed ? err_set(err, EIO, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}
