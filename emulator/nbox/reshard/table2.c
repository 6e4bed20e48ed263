/* See table2.h. */
#include "nbox/reshard/table2.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "mesh/mesh.h"

#define NODES 1000000 /* of the search, so that a seed says it all */

static const struct {
	const char *tensor, *src, *dst;
} cases[TABLE2_CASES] = {
	{"1024x1024x512", "S0RR@2x4", "S0RR@2x4"}, {"1024x1024x512", "RRR@2x4", "S0RR@2x4"},
	{"1024x1024x512", "RS0R@2x4", "S0RR@2x4"}, {"1024x1024x512", "RS01R@2x4", "S01RR@2x4"},
	{"1024x1024x512", "S1RR@2x4", "S0RR@2x4"}, {"3072x1024x170", "S0RR@2x4", "S0RR@3x4"},
	{"1024x1024x512", "S1RR@1x4", "RRR@2x4"},  {"1024x1024x512", "RRR@2x3", "RRR@3x2"},
	{"1024x1024x512", "RS0R@2x4", "RRS0@2x4"},
};

/* Where the whole tensor takes one unit of time. */
struct scaled {
	struct mesh_reshard reshard;
	struct mesh_net net;
	uint64_t seed;
};

static int plan(const struct scaled *s, enum mesh_strategy strategy, enum turns_algo algo,
		struct turns *ret)
{
	const struct turns_effort effort = {.seed = s->seed, .nodes = NODES};
	struct err err;

	return mesh_plan(&s->reshard, strategy, &s->net, algo, &effort, ret, &err);
}

static int end_of(const struct scaled *s, enum mesh_strategy strategy, enum turns_algo algo,
		  double *ret)
{
	struct turns t;
	int r = plan(s, strategy, algo, &t);

	if (r == 0)
		*ret = t.end_ns;
	if (r == 0)
		turns_deinit(&t);
	return r;
}

static double longest(const struct scaled *s, enum mesh_strategy strategy)
{
	double most = 0;

	for (uint32_t i = 0; i < s->reshard.n; i++)
		most = fmax(most, mesh_strategy_ns(strategy, s->reshard.tasks[i].bytes,
						   s->reshard.tasks[i].to, &s->net));
	return most;
}

static int fill(const struct scaled *s, struct table2_row *row)
{
	struct turns t;
	int r = plan(s, MESH_BROADCAST, TURNS_OURS, &t);

	if (r < 0)
		return r;
	row->tasks = s->reshard.n;
	row->bound = t.bound_ns;
	row->ours = t.end_ns;
	row->is_optimal = t.is_optimal;
	turns_deinit(&t);
	row->local_ag_task = longest(s, MESH_LOCAL_AG);
	row->sendrecv_task = longest(s, MESH_SENDRECV);
	r = end_of(s, MESH_BROADCAST, TURNS_NAIVE, &row->naive);
	r = r < 0 ? r : end_of(s, MESH_BROADCAST, TURNS_LB, &row->lb);
	r = r < 0 ? r : end_of(s, MESH_LOCAL_AG, TURNS_ALPA, &row->local_ag);
	r = r < 0 ? r : end_of(s, MESH_GLOBAL_AG, TURNS_ALPA, &row->global_ag);
	return r < 0 ? r : end_of(s, MESH_SENDRECV, TURNS_ALPA, &row->sendrecv);
}

int table2_row(uint32_t number, uint64_t seed, struct table2_row *ret)
{
	struct table2_row row = {.tensor = cases[number - 1].tensor,
				 .src = cases[number - 1].src,
				 .dst = cases[number - 1].dst};
	struct scaled s = {.seed = seed, .net = {.inside = INFINITY, .k = MESH_K_ENDLESS}};
	struct mesh_tensor tensor;
	struct mesh_spec src, dst;
	struct err err;
	int r;

	if (mesh_dims_parse(row.tensor, &tensor, &err) || mesh_spec_parse(row.src, &src, &err) ||
	    mesh_spec_parse(row.dst, &dst, &err))
		abort(); /* they are constants */
	tensor.element_bytes = 4;
	s.net.nic = (double)mesh_bytes(&tensor);
	r = mesh_reshard_init(&s.reshard, &tensor, &src, &dst, &err);
	r = r < 0 ? r : fill(&s, &row);
	mesh_reshard_deinit(&s.reshard);
	if (r == 0)
		*ret = row;
	return r;
}

int table2_print(uint64_t seed, FILE *to)
{
	struct table2_row t;

	fputs("Table 2 of AlpaComm; times in units of the whole tensor through one NIC.\n"
	      "Broadcasts of endless pieces; all-gathers and sends by Alpa's planner.\n"
	      "case source       destination  tasks   bound   naive      lb    ours  local-ag  global-ag  sendrecv\n",
	      to);
	for (uint32_t i = 1; i <= TABLE2_CASES; i++) {
		int r = table2_row(i, seed, &t);

		if (r < 0)
			return r;
		fprintf(to, "%4u %-12s %-12s %5u%8.4g%8.4g%8.4g%8.4g%10.4g%11.4g%10.4g  %s\n", i,
			t.src, t.dst, t.tasks, t.bound, t.naive, t.lb, t.ours, t.local_ag,
			t.global_ag, t.sendrecv, t.is_optimal ? "optimal" : "");
	}
	return 0;
}

int table2_json(uint64_t seed, FILE *to)
{
	json_t *rows = json_array();
	struct table2_row t;
	int r = rows ? 0 : -ENOMEM;

	for (uint32_t i = 1; r == 0 && i <= TABLE2_CASES; i++) {
		r = table2_row(i, seed, &t);
		if (r == 0 &&
		    json_array_append_new(
			    rows,
			    json_pack(
				    "{s:i, s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:b, s:f, s:f, s:f}",
				    "case", (int)i, "tensor", t.tensor, "src", t.src, "dst", t.dst,
				    "tasks", (int)t.tasks, "bound", t.bound, "naive", t.naive, "lb",
				    t.lb, "ours", t.ours, "optimal", t.is_optimal, "local_ag",
				    t.local_ag, "global_ag", t.global_ag, "sendrecv", t.sendrecv)) <
			    0)
			r = -ENOMEM;
	}
	if (r == 0)
		json_dumpf(rows, to, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	json_decref(rows);
	return r;
}
