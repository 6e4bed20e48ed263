/* See rows-print.h. Lines that are no rows begin with '#', as the remarks of nccl-tests' table do.
 */
#include "nbox/perf/rows-print.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "nbox/perf/draw.h"

static void print_head(const struct perf_made *made, bool is_planned, FILE *to)
{
	const struct config *c = made->config;
	char model[1024];

	fprintf(to, "# nbox: %u ranks (%u nodes x %u), modelled; model %s\n", c->world,
		c->topology.n_nodes, c->topology.gpus_per_node,
		config_model(c, model, sizeof(model)));
	if (made->network[0])
		fprintf(to, "# network: %s\n", made->network);
	if (strstr(made->calibration, "extrapolated")) /* it knows the sizes, too */
		fprintf(to, "# %s\n", made->calibration);
	fprintf(to, "#\n# %10s %13s %9s %7s %7s %10s %7s %7s %10s %6s%s\n", "size", "count", "type",
		"redop", "root", "time", "algbw", "busbw", "bound", "x",
		is_planned ? "  algo     proto    ch" : "");
	fprintf(to, "# %10s %13s %9s %7s %7s %10s %7s %7s %10s %6s\n", "(B)", "(elements)", "", "",
		"", "(us)", "(GB/s)", "(GB/s)", "(us)", "bound");
}

static void print_row(const struct perf_rows *all, const struct perf_row *r, FILE *to)
{
	const struct answer *a = &r->answer;
	double x = a->bound_ns > 0 ? a->model_ns / a->bound_ns : 0;
	char times[32] = "-";

	if (x > 0)
		snprintf(times, sizeof(times), x < 100 ? "%.2f" : x < 1e4 ? "%.0f" : ">9999", x);
	fprintf(to, "%12llu %13llu %9s %7s %7s %10.2f %7.2f %7.2f %10.2f %6s",
		(unsigned long long)r->bytes, (unsigned long long)r->count,
		coll_dtype_name(all->dtype), coll_reduces(all->kind) ? "sum" : "none",
		coll_has_root(all->kind) ? "0" : "-1", a->ns / 1e3, r->algbw, r->busbw,
		a->bound_ns / 1e3, times);
	if (a->plan.n_lanes)
		fprintf(to, "  %-8s %-6s %4u", ask_algo_name(a->plan.algo),
			ask_proto_name(a->plan.proto), a->plan.n_lanes);
	fputc('\n', to);
}

void rows_print(const struct perf_rows *r, const struct perf_made *made, FILE *to)
{
	print_head(made, r->n && r->rows[0].answer.plan.n_lanes, to);
	for (size_t i = 0; i < r->n; i++)
		print_row(r, &r->rows[i], to);
	fprintf(to, "# Avg bus bandwidth    : %g\n#\n", perf_rows_average_busbw(r));
	perf_draw_text(r, to);
	for (size_t i = 0; i < made->n_warnings; i++)
		fprintf(to, "# warning: %s\n", made->warnings[i]);
}

/* --- JSON ------------------------------------------------------------------------- */

static const char *how_name(enum solve_how how)
{
	static const char *const names[] = {"op", "symmetry", "simulation"}; /* SOLVE_... */

	return names[how];
}

static json_t *row_json(const struct perf_rows *all, const struct perf_row *r)
{
	const struct answer *a = &r->answer;

	json_t *o = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:s, s:f, s:f, s:s}", "op",
			      coll_kind_name(all->kind), "bytes", (json_int_t)r->bytes, "count",
			      (json_int_t)r->count, "modelled_us", a->model_ns / 1e3, "injected_us",
			      (a->ns - a->model_ns) / 1e3, "bound_us", a->bound_ns / 1e3,
			      "bound_at", a->bound_at, "algbw_gbps", r->algbw, "busbw_gbps",
			      r->busbw, "how", how_name(a->how));

	if (o && a->plan.n_lanes)
		json_object_update_new(o, json_pack("{s:s, s:s, s:i, s:f}", "algo",
						    ask_algo_name(a->plan.algo), "proto",
						    ask_proto_name(a->plan.proto), "channels",
						    (int)a->plan.n_lanes, "estimate_us",
						    a->plan.estimate_ns / 1e3));
	return o;
}

static json_t *rows_json(const struct perf_rows *r, const struct perf_made *made)
{
	const struct config *c = made->config;
	json_t *rows = json_array(), *warnings = json_array();
	char model[1024];

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(rows, row_json(r, &r->rows[i]));
	for (size_t i = 0; i < made->n_warnings; i++)
		json_array_append_new(warnings, json_string(made->warnings[i]));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:s?, s:s, s:s, s:f, s:o, s:o}", "op",
			 coll_kind_name(r->kind), "dtype", coll_dtype_name(r->dtype), "ranks",
			 (int)c->world, "nodes", (int)c->topology.n_nodes, "gpus_per_node",
			 (int)c->topology.gpus_per_node, "model",
			 config_model(c, model, sizeof(model)), "fabric",
			 c->fabric ? c->fabric->name : NULL, "network", made->network,
			 "calibration", made->calibration, "avg_busbw_gbps",
			 perf_rows_average_busbw(r), "rows", rows, "warnings", warnings);
}

int rows_write_json(const struct perf_rows *r, const struct perf_made *made, const char *path,
		    struct err *err)
{
	json_t *o = rows_json(r, made);
	bool is_stdout = strcmp(path, "-") == 0;
	FILE *f = !o ? NULL : is_stdout ? stdout : fopen(path, "w");
	int failed, e = errno;

	if (!o)
		return err_set(err, ENOMEM, "out of memory");
	if (!f) {
		json_decref(o);
		return err_set(err, e, "%s: cannot be written: %s", path, strerror(e));
	}
	failed = json_dumpf(o, f, JSON_INDENT(1)) < 0 ? -EIO : 0;
	fputc('\n', f);
	json_decref(o);
	e = is_stdout ? failed : file_close(f);
	return failed || e < 0 ? err_set(err, EIO, "%s: cannot be written: %s", path,
					 strerror(e ? -e : EIO))
			       : 0;
}
