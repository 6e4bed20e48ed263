/* See classes.h. */
#include "nbox/report/classes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/json/json-file.h"
#include "topology/template.h"

#define LINES_MAX 16 /* of the text */

static bool is_real_in(const struct record *rec, uint32_t world_rank)
{
	for (uint64_t i = 0; i < rec->n_comms; i++)
		for (uint32_t k = 0; k < rec->comms[i].n_real; k++)
			if (rec->comms[i].real[k].world_rank == world_rank)
				return true;
	return false;
}

/* @rank is the first of @x's class; c->real[@k] the first real rank that it may copy. */
static void fill(struct report_class *x, const struct config *c, uint32_t rank, uint32_t k,
		 const struct report_origin *origins, size_t n)
{
	uint32_t real = c->real[k];
	const char *gpu =
		c->fabric ? fabric_class_of(c->fabric, rank / c->topology.gpus_per_node)->gpu
			  : NULL;

	classes_name(&c->classes, rank, gpu, x->name, sizeof(x->name));
	x->real = real;
	x->like = c->classes.of[real];
	for (size_t i = 0; i < n; i++)
		if (is_real_in(origins[i].rec, origins[i].was[k])) {
			snprintf(x->run, sizeof(x->run), "%.127s", origins[i].run);
			x->real = origins[i].was[k];
		}
	plain_text(x->run);
}

static void warn(struct report *r)
{
	uint32_t n = 0;
	char first[REPORT_CLASS_NAME_MAX] = "";

	for (uint32_t i = 0; i < r->n_classes; i++)
		if (!r->classes[i].n_real && n++ == 0)
			snprintf(first, sizeof(first), "%s", r->classes[i].name);
	if (n)
		report_warn(
			r,
			"%u of %u classes of ranks (%s%s) were never seen: they compute as those of another class do. "
			"Record each (--as-node K, --real R), and run beside the records, or play them together (--with RUN2 of nbox run, nbox retime)",
			n, r->n_classes, first, n > 1 ? ", ..." : "");
}

void report_classes_of(struct report *r, const struct config *c,
		       const struct report_origin *origins, size_t n)
{
	const struct membership world = {.n_ranks = c->world, .stride = 1};
	CLEANUP(templates_deinit) struct templates t = {0};

	r->n_classes = 0;
	if (c->classes.n > REPORT_CLASSES_MAX)
		report_warn(r, "%u classes of ranks: too many to say whose timeline each has",
			    c->classes.n);
	if (c->classes.n == 1 || c->classes.n > REPORT_CLASSES_MAX ||
	    templates_init(&t, &world, c->topology.gpus_per_node, c->classes.of, c->real,
			   (uint32_t)c->n_real) < 0)
		return;
	memset(r->classes, 0, sizeof(r->classes));
	for (uint32_t rank = 0; rank < c->world; rank++) {
		struct report_class *x = &r->classes[c->classes.of[rank]];

		if (x->n_ranks++ == 0)
			fill(x, c, rank, template_of(&t, rank), origins, n);
	}
	for (size_t i = 0; i < c->n_real; i++)
		r->classes[c->classes.of[c->real[i]]].n_real++;
	r->n_classes = c->classes.n;
	warn(r);
}

static bool has_process(const struct config *c, uint32_t rank)
{
	for (size_t i = 0; i < c->n_real; i++)
		if (c->real[i] == rank)
			return true;
	return false;
}

/* The folder's name where all recorded ranks are of one run. */
static void name_record(struct report_class *x, const struct config *c)
{
	const struct config_value *with = &c->values[CONFIG_WITH];
	const char *path = with->n_items == 1 ? with->items[0].text : "a run of --with",
		   *name = path;

	for (const char *p = path; (p = strchr(p, '/')); p++)
		if (p[1] && strcmp(p, "/record.nbox") != 0)
			name = p + 1;
	snprintf(x->run, sizeof(x->run), "%.*s", (int)strcspn(name, "/"), name);
	plain_text(x->run);
}

void report_classes_of_run(struct report *r, const struct config *c, const struct record *rec)
{
	CLEANUP(freep) uint32_t *real = malloc(c->world * sizeof(*real));
	CLEANUP(bitmap_deinit) struct bitmap is_real = {0};
	struct config own = *c;

	if (!real || bitmap_init(&is_real, c->world) < 0)
		return;
	for (uint64_t i = 0; i < rec->n_comms; i++)
		for (uint32_t k = 0; k < rec->comms[i].n_real; k++)
			if (rec->comms[i].real[k].world_rank < c->world)
				bitmap_set(&is_real, rec->comms[i].real[k].world_rank);
	for (size_t i = 0; i < c->n_real; i++)
		bitmap_set(&is_real, c->real[i]);
	own.real = real;
	own.n_real = 0;
	for (uint32_t rank = 0; rank < c->world; rank++)
		if (bitmap_test(&is_real, rank))
			real[own.n_real++] = rank;
	report_classes_of(r, &own, NULL, 0);
	for (uint32_t i = 0; i < r->n_classes; i++)
		if (!has_process(c, r->classes[i].real))
			name_record(&r->classes[i], c);
}

void report_classes_of_folder(struct report *r, const struct record *rec, const char *dir)
{
	struct config *c = NULL;
	struct err err;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/config.yaml", dir);
	if (access(path, R_OK) == 0 && config_new(&c) == 0 && config_file(c, path, &err) == 0 &&
	    config_finish(c, &err) == 0)
		report_classes_of_run(r, c, rec);
	config_free(c);
}

char *report_class_text(const struct report *r, uint32_t class, char *buf, size_t size)
{
	const struct report_class *x = &r->classes[class];
	size_t n =
		(size_t)snprintf(buf, size, "%u rank%s, ", x->n_ranks, x->n_ranks == 1 ? "" : "s");

	if (x->n_real)
		snprintf(buf + n, size - n, "%u real (%s %u%s%s)", x->n_real,
			 x->n_real == 1 ? "rank" : "from rank", x->real, x->run[0] ? " of " : "",
			 x->run);
	else
		snprintf(buf + n, size - n, "never seen: computes as %s does (rank %u%s%s)",
			 r->classes[x->like].name, x->real, x->run[0] ? " of " : "", x->run);
	return buf;
}

void report_classes_print(const struct report *r, FILE *to)
{
	char text[REPORT_CLASS_TEXT_MAX];

	for (uint32_t i = 0; i < r->n_classes && i < LINES_MAX; i++)
		fprintf(to, "   %-14s %s: %s\n", i ? "" : "classes", r->classes[i].name,
			report_class_text(r, i, text, sizeof(text)));
	if (r->n_classes > LINES_MAX)
		fprintf(to, "   %-14s and %u more: summary.json has them\n", "",
			r->n_classes - LINES_MAX);
}

json_t *report_classes_json(const struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->n_classes; i++) {
		const struct report_class *x = &r->classes[i];
		json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:s}", "class", x->name, "ranks",
				      (int)x->n_ranks, "real", (int)x->n_real, "timeline_of_rank",
				      (int)x->real, "timeline_of_class", r->classes[x->like].name);

		if (o && x->run[0])
			json_object_set_new(o, "of_run", json_string(x->run));
		json_array_append_new(list, o);
	}
	return list;
}

static uint32_t number(const json_t *o, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(o, key));
}

void report_classes_recall(struct report *r, const json_t *list)
{
	char like[REPORT_CLASS_NAME_MAX];
	const json_t *o;
	size_t i;

	memset(r->classes, 0, sizeof(r->classes));
	r->n_classes = 0;
	json_array_foreach(list, i, o)
	{
		struct report_class *x = &r->classes[r->n_classes];

		if (r->n_classes == REPORT_CLASSES_MAX)
			break;
		r->n_classes++;
		json_text(o, "class", x->name, sizeof(x->name));
		json_text(o, "of_run", x->run, sizeof(x->run));
		x->n_ranks = number(o, "ranks");
		x->n_real = number(o, "real");
		x->real = number(o, "timeline_of_rank");
	}
	for (uint32_t k = 0; k < r->n_classes; k++) {
		json_text(json_array_get(list, k), "timeline_of_class", like, sizeof(like));
		for (uint32_t m = 0; m < r->n_classes; m++)
			if (strcmp(r->classes[m].name, like) == 0)
				r->classes[k].like = m;
	}
}
