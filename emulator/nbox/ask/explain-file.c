/* See explain-file.h. A decision is counted by its choice: algorithm and protocol. Sizes that
 * follow each other with the same two choices are one range. */
#include "nbox/ask/explain-file.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nccl/decisions.h"
#include "schedule/coll.h"

struct choice {
	uint32_t algo, proto; /* enum nbox_algo, enum nbox_proto; UINT32_MAX: nothing possible */
};

/* Sizes of which NCCL and nbox's own rules make different things. */
struct range {
	uint64_t from, to;
	struct choice nccl, own;
};

struct counts {
	size_t n, n_same, n_no_call; /* n_no_call: no call has these bytes; not in n */
	size_t n_lanes;              /* of n_same, other channels by nbox's own rules */
	double cost_off;             /* the most that nbox's own cost of NCCL's choice is off */
};

/* One kind of op of one communicator. */
struct part {
	const struct decisions_comm *comm;
	enum coll_kind kind;
	struct counts counts;
	struct range *ranges; /* owned */
	size_t n_ranges;
};

struct walk {
	struct ask *ask;
	struct decisions file;
	struct part *parts; /* owned */
	size_t n_parts;
	size_t n_outside; /* communicators that the cluster has no place for */
};

static void walk_deinit(struct walk *w)
{
	for (size_t i = 0; i < w->n_parts; i++)
		free(w->parts[i].ranges);
	free(w->parts);
	decisions_deinit(&w->file);
}

static int read_file(const char *path, struct decisions *ret, struct err *err)
{
	char sentence[DECISIONS_SENTENCE];

	return decisions_read(path, ret, sentence) == 0 ? 0 : err_set(err, EINVAL, "%s", sentence);
}

int explain_file_configure(struct config *c, const char *path, struct err *err)
{
	struct decisions d;
	char text[16];
	CLEANUP(freep) char *model = NULL;
	uint32_t nodes = 1;
	int r;

	if (strchr(path, ','))
		return err_set(err, EINVAL,
			       "--decisions %s: a model's file has no comma in its name", path);
	if (config_is_set(c, CONFIG_MODEL))
		return err_set(err, EINVAL,
			       "--decisions goes with no --model: it is nccl:decisions=%s", path);
	r = read_file(path, &d, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < d.n; i++)
		nodes = d.comms[i].n_nodes > nodes ? d.comms[i].n_nodes : nodes;
	decisions_deinit(&d);
	if (asprintf(&model, "nccl:decisions=%s", path) < 0) {
		model = NULL;
		return -ENOMEM;
	}
	snprintf(text, sizeof(text), "%u", nodes);
	r = config_set(c, CONFIG_MODEL, SOURCE_FLAG, model);
	if (r == 0 && !config_is_set(c, CONFIG_NODES))
		r = config_set(c, CONFIG_NODES, SOURCE_FLAG, text);
	return r;
}

/* --- the questions ------------------------------------------------------------------- */

/* Ranks of the first nodes, as NCCL counts nodes: those that NVLink joins are one. Return: 0; 1:
 * the cluster has no place for them; -ENOMEM. */
static int place(const struct config *c, const struct decisions_comm *comm, uint32_t **ret)
{
	const struct fabric *f = c->fabric;
	uint32_t joined = f->classes[0].domain_nodes > 1 ? f->classes[0].domain_nodes : 1;
	uint32_t all = c->topology.gpus_per_node * joined, each = comm->n_ranks / comm->n_nodes;
	uint32_t *table;

	if (each > all || (uint64_t)all * comm->n_nodes > c->world)
		return 1;
	table = malloc(comm->n_ranks * sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < comm->n_ranks; i++)
		table[i] = i / each * all + i % each;
	*ret = table;
	return 0;
}

/* Adds the size to the last range where it goes on. */
static int add_range(struct part *part, uint64_t bytes, bool follows, struct choice nccl,
		     struct choice own)
{
	struct range *last = part->n_ranges ? &part->ranges[part->n_ranges - 1] : NULL, *more;

	if (follows && last && last->nccl.algo == nccl.algo && last->nccl.proto == nccl.proto &&
	    last->own.algo == own.algo && last->own.proto == own.proto) {
		last->to = bytes;
		return 0;
	}
	more = realloc(part->ranges, (part->n_ranges + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	part->ranges = more;
	more[part->n_ranges++] = (struct range){bytes, bytes, nccl, own};
	return 0;
}

static void compare_costs(const struct nbox_plan *p, struct counts *ret)
{
	for (uint32_t i = 0; i < p->n_candidates; i++) {
		const struct nbox_candidate *k = &p->candidates[i];

		if (k->algo == p->algo && k->proto == p->proto && k->cost_ns > 0 &&
		    p->own_cost_ns[i] >= 0)
			ret->cost_off =
				fmax(ret->cost_off, fabs(p->own_cost_ns[i] / k->cost_ns - 1));
	}
}

static int ask_part(struct ask *ask, const struct membership *m, struct part *part, struct err *err)
{
	const struct decisions_op *op = &part->comm->ops[part->kind];
	struct counts *n = &part->counts;
	bool follows = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < op->n; i++) {
		uint64_t size = op->points[i].bytes,
			 bytes = ask_bytes(part->kind, size, 1, m->n_ranks);
		struct nbox_plan p;

		if (ask_size(part->kind, bytes, m->n_ranks) != size) {
			n->n_no_call++;
			continue;
		}
		r = ask_plan(ask, m, part->kind, bytes, 1, &p, err);
		if (r < 0)
			return r;
		n->n++;
		compare_costs(&p, n);
		if (p.algo == p.own_algo && p.proto == p.own_proto) {
			n->n_same++;
			n->n_lanes += p.n_lanes != p.own_lanes;
			follows = false;
			continue;
		}
		r = add_range(part, size, follows, (struct choice){p.algo, p.proto},
			      (struct choice){p.own_algo, p.own_proto});
		follows = true;
	}
	return r;
}

static int ask_comm(struct walk *w, const struct decisions_comm *comm, struct err *err)
{
	CLEANUP(freep) uint32_t *table = NULL;
	struct membership m = {.n_ranks = comm->n_ranks};
	int r = place(ask_config(w->ask), comm, &table);

	if (r == 1)
		w->n_outside++;
	if (r != 0)
		return r < 0 ? r : 0;
	m.table = table;
	for (uint32_t kind = 0; r == 0 && kind < N_COSTED; kind++) {
		struct part *more;

		if (!comm->ops[kind].n)
			continue;
		more = realloc(w->parts, (w->n_parts + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->parts = more;
		more[w->n_parts++] = (struct part){.comm = comm, .kind = (enum coll_kind)kind};
		r = ask_part(w->ask, &m, &more[w->n_parts - 1], err);
	}
	return r;
}

static struct counts sum(const struct walk *w)
{
	struct counts all = {0};

	for (size_t i = 0; i < w->n_parts; i++) {
		const struct counts *n = &w->parts[i].counts;

		all.n += n->n;
		all.n_same += n->n_same;
		all.n_no_call += n->n_no_call;
		all.n_lanes += n->n_lanes;
		all.cost_off = fmax(all.cost_off, n->cost_off);
	}
	return all;
}

/* --- the answer ------------------------------------------------------------------------- */

static const char *choice_text(struct choice c, char *buf, size_t size)
{
	if (c.algo == UINT32_MAX)
		snprintf(buf, size, "nothing");
	else
		snprintf(buf, size, "%s %s", ask_algo_name(c.algo), ask_proto_name(c.proto));
	return buf;
}

static void print_counts(const struct counts *n, FILE *to)
{
	fprintf(to, "%zu decision%s, %zu the same, %zu other; costs at most %.1f %% off", n->n,
		n->n == 1 ? "" : "s", n->n_same, n->n - n->n_same, 100 * n->cost_off);
	if (n->n_lanes)
		fprintf(to, "; %zu of the same with other channels", n->n_lanes);
	if (n->n_no_call)
		fprintf(to, "; %zu sizes are no call's", n->n_no_call);
	fputc('\n', to);
}

static void print_part(const struct part *p, FILE *to)
{
	fprintf(to, "            %-14s", coll_kind_name(p->kind));
	print_counts(&p->counts, to);
	for (size_t i = 0; i < p->n_ranges; i++) {
		const struct range *g = &p->ranges[i];
		char from[32], until[32], nccl[32], own[32];

		units_print_bytes(g->from, from, sizeof(from));
		units_print_bytes(g->to, until, sizeof(until));
		fprintf(to, "            %14s%s%s%s: NCCL takes %s, nbox's own rules %s\n", "",
			from, g->to > g->from ? " to " : "", g->to > g->from ? until : "",
			choice_text(g->nccl, nccl, sizeof(nccl)),
			choice_text(g->own, own, sizeof(own)));
	}
}

static void print_text(const struct walk *w, const char *path, FILE *to)
{
	const struct decisions *d = &w->file;
	const struct counts all = sum(w);

	fprintf(to, "decisions   %s: NCCL %s, %s; %s, %s\n", path, d->nccl, d->date, d->gpus,
		d->made);
	fprintf(to, "fabric      %s\n", ask_config(w->ask)->fabric->name);
	for (size_t i = 0; i < w->n_parts; i++) {
		const struct decisions_comm *c = w->parts[i].comm;

		if (i == 0 || c != w->parts[i - 1].comm)
			fprintf(to, "%u ranks on %u node%s\n", c->n_ranks, c->n_nodes,
				c->n_nodes == 1 ? "" : "s");
		print_part(&w->parts[i], to);
	}
	fputs("in all      ", to);
	print_counts(&all, to);
	if (w->n_outside)
		fprintf(to,
			"            %zu communicator%s of the file %s no place in %u nodes of %u: "
			"give --nodes, or the preset of the machine\n",
			w->n_outside, w->n_outside == 1 ? "" : "s",
			w->n_outside == 1 ? "has" : "have", ask_config(w->ask)->topology.n_nodes,
			ask_config(w->ask)->topology.gpus_per_node);
}

static json_t *counts_json(const struct counts *n)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f}", "decisions", (json_int_t)n->n, "same",
			 (json_int_t)n->n_same, "other", (json_int_t)(n->n - n->n_same),
			 "other_channels", (json_int_t)n->n_lanes, "no_call",
			 (json_int_t)n->n_no_call, "cost_off", n->cost_off);
}

static json_t *part_json(const struct part *p)
{
	json_t *o = counts_json(&p->counts), *ranges = json_array();
	char nccl[32], own[32];

	for (size_t i = 0; i < p->n_ranges; i++) {
		const struct range *g = &p->ranges[i];

		json_array_append_new(ranges,
				      json_pack("{s:I, s:I, s:s, s:s}", "from_bytes",
						(json_int_t)g->from, "to_bytes", (json_int_t)g->to,
						"nccl", choice_text(g->nccl, nccl, sizeof(nccl)),
						"own", choice_text(g->own, own, sizeof(own))));
	}
	json_object_set_new(o, "ranks", json_integer(p->comm->n_ranks));
	json_object_set_new(o, "nodes", json_integer(p->comm->n_nodes));
	json_object_set_new(o, "op", json_string(coll_kind_name(p->kind)));
	json_object_set_new(o, "ranges", ranges);
	return o;
}

static int print_json(const struct walk *w, const char *path, FILE *to)
{
	const struct counts all = sum(w);
	json_t *o = counts_json(&all), *parts = json_array();
	int failed;

	for (size_t i = 0; i < w->n_parts; i++)
		json_array_append_new(parts, part_json(&w->parts[i]));
	json_object_set_new(o, "file", json_string(path));
	json_object_set_new(o, "nccl", json_string(w->file.nccl));
	json_object_set_new(o, "fabric", json_string(ask_config(w->ask)->fabric->name));
	json_object_set_new(o, "outside", json_integer((json_int_t)w->n_outside));
	json_object_set_new(o, "ops", parts);
	failed = !o || json_dumpf(o, to, JSON_INDENT(1)) < 0;
	fputc('\n', to);
	json_decref(o);
	return failed ? -ENOMEM : 0;
}

int explain_file_print(struct ask *a, const char *path, bool is_json, FILE *to, struct err *err)
{
	CLEANUP(walk_deinit) struct walk w = {.ask = a};
	int r = read_file(path, &w.file, err);

	for (size_t i = 0; r == 0 && i < w.file.n; i++)
		r = ask_comm(&w, &w.file.comms[i], err);
	if (r < 0)
		return r;
	if (is_json)
		return print_json(&w, path, to);
	print_text(&w, path, to);
	return 0;
}
