/* See rows-print.h. Lines that are no rows begin with '#', as the remarks of nccl-tests' table do.
 */
#include "nbox/perf/rows-print.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/json/json-file.h"
#include "nbox/perf/draw.h"

/* @p: the first row's. */
static void print_head(const struct perf_made *made, const struct nbox_plan *p, FILE *to)
{
	const struct config *c = made->config;
	const char *source = p->source ? p->source : "the model";
	char model[1024], world[64];

	fprintf(to, "# nbox: %s, modelled; model %s\n",
		topology_print(&c->topology, world, sizeof(world)),
		config_model(c, model, sizeof(model)));
	if (made->network[0])
		fprintf(to, "# network: %s\n", made->network);
	if (made->decided_by)
		fprintf(to, "# decided by: %s\n", made->decided_by);
	if (p->n_candidates)
		fprintf(to,
			"# <-: from this size on %.*s takes another algorithm, protocol or number of "
			"channels: a step of the time is its own\n",
			(int)strcspn(source, ","), source);
	fprintf(to, "#\n# %10s %13s %9s %7s %7s %10s %7s %7s %10s %6s%s\n", "size", "count", "type",
		"redop", "root", "time", "algbw", "busbw", "bound", "x",
		p->n_lanes ? "  algo     proto    ch" : "");
	fprintf(to, "# %10s %13s %9s %7s %7s %10s %7s %7s %10s %6s\n", "(B)", "(elements)", "", "",
		"", "(us)", "(GB/s)", "(GB/s)", "(us)", "bound");
}

/* Which columns of a plan are otherwise than in the row above. */
static void print_changes(const struct nbox_plan *p, const struct nbox_plan *above, FILE *to)
{
	const struct {
		const char *column;
		bool is_other;
	} columns[] = {{" algo", p->algo != above->algo},
		       {" proto", p->proto != above->proto},
		       {" ch", p->n_lanes != above->n_lanes}};
	const char *mark = "  <-";

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (columns[i].is_other) {
			fprintf(to, "%s%s", mark, columns[i].column);
			mark = "";
		}
}

/* @above: the row before; NULL: @r is the first. */
static void print_row(const struct perf_rows *all, const struct perf_row *r,
		      const struct perf_row *above, FILE *to)
{
	const struct answer *a = &r->answer;
	double x = a->bound_ns > 0 ? a->ns / a->bound_ns : 0;
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
	if (a->plan.n_lanes && above)
		print_changes(&a->plan, &above->answer.plan, to);
	fputc('\n', to);
}

void rows_print(const struct perf_rows *r, const struct perf_made *made, FILE *to)
{
	print_head(made, &r->rows[0].answer.plan, to);
	for (size_t i = 0; i < r->n; i++)
		print_row(r, &r->rows[i], i ? &r->rows[i - 1] : NULL, to);
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
			      "bound_at", a->bound_at, "algbw_gb_per_s", r->algbw, "busbw_gb_per_s",
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
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:s?, s:s, s:s?, s:s, s:f, s:o, s:o}",
			 "op", coll_kind_name(r->kind), "dtype", coll_dtype_name(r->dtype), "ranks",
			 (int)c->world, "nodes", (int)c->topology.n_nodes, "gpus_per_node",
			 (int)c->topology.gpus_per_node, "model",
			 config_model(c, model, sizeof(model)), "fabric",
			 c->fabric ? c->fabric->name : NULL, "network", made->network, "decided_by",
			 made->decided_by, "calibration", made->calibration, "avg_busbw_gb_per_s",
			 perf_rows_average_busbw(r), "rows", rows, "warnings", warnings);
}

int rows_write_json(const struct perf_rows *r, const struct perf_made *made, const char *path,
		    struct err *err)
{
	return json_file_write(rows_json(r, made), path, err);
}
