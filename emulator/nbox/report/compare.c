/* See compare.h. One list of differences and one of values, each for people and for programs. */
#include "nbox/report/compare.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "config/config.h"
#include "nbox/report/load.h"
#include "nbox/report/recall.h"
#include "nbox/report/ways.h"

#define FILE_MAX (1 << 20) /* bytes of config.yaml, versions.txt */
#define TEXT_MAX 512
#define NOISE_STEPS_MIN 5 /* timed steps of a run: how much it varies is not known from fewer */

/* --- loading --------------------------------------------------------------------------------- */

/* NULL: not there, or not to be read. The caller's. */
static char *read_text(const char *dir, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	size_t n;

	snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 64, dir, name);
	return file_read(path, FILE_MAX, &text, &n, NULL) < 0 ? NULL : text;
}

static struct config *read_config(const char *dir)
{
	CLEANUP(freep) char *text = read_text(dir, "config.yaml");
	struct config *c = NULL;

	if (text && config_new(&c) == 0 &&
	    config_parse(c, "config.yaml", text, strlen(text), NULL) < 0)
		c = config_free(c);
	return c;
}

int compare_load(const char *word, struct compare_side *ret, struct err *err)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {0};
	char path[PATH_MAX + 32];
	int r = run_load(word, &run, err);

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->dir, sizeof(ret->dir), "%s", word);
	plain_text(ret->dir);
	if (r == 0 && !run.dir[0])
		return runs_not_found(word, err);
	if (r == 0 && run_report(&run, &ret->rep) < 0)
		r = err_set(err, ENOMEM, "%s: out of memory", ret->dir);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/summary.json", run.dir);
	report_recall(&ret->rep, path);
	ret->info = run.info;
	ret->config = read_config(run.dir);
	ret->versions = read_text(run.dir, "versions.txt");
	return 0;
}

void compare_deinit(struct compare_side *s)
{
	s->config = config_free(s->config);
	free(s->versions);
	s->versions = NULL;
}

/* --- what was asked for ---------------------------------------------------------------------- */

struct difference {
	char what[64], a[TEXT_MAX], b[TEXT_MAX];
};

struct differences {
	struct difference *list; /* owned */
	size_t n;
};

static void differences_deinit(struct differences *d)
{
	free(d->list);
}

/* Keeps it if the texts differ. Without memory it is lost. */
static void note(struct differences *d, const char *what, const char *a, const char *b)
{
	struct difference *grown;

	if (strcmp(a, b) == 0)
		return;
	grown = reallocarray(d->list, d->n + 1, sizeof(*grown));
	if (!grown)
		return;
	d->list = grown;
	snprintf(grown[d->n].what, sizeof(grown->what), "%s", what);
	snprintf(grown[d->n].a, sizeof(grown->a), "%s", a[0] ? a : "-");
	snprintf(grown[d->n].b, sizeof(grown->b), "%s", b[0] ? b : "-");
	plain_text(grown[d->n].what);
	plain_text(grown[d->n].a);
	plain_text(grown[d->n].b);
	d->n++;
}

static const char *option_text(const struct config *c, int id, char *buf, size_t size)
{
	const struct config_value *v = &c->values[id];
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < v->n_items && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? "; " : "",
					 v->items[i].text);
	return buf;
}

static void note_options(struct differences *d, const struct compare_side *a,
			 const struct compare_side *b)
{
	char left[TEXT_MAX], right[TEXT_MAX];

	for (int id = 0; id < CONFIG_OPTIONS; id++)
		if (id != CONFIG_OUT && id != CONFIG_ADDR && id != CONFIG_TOKEN &&
		    id != CONFIG_STORE && id != CONFIG_LOG && id != CONFIG_NCCL) /* the way */
			note(d, options[id].name, option_text(a->config, id, left, sizeof(left)),
			     option_text(b->config, id, right, sizeof(right)));
}

/* What the record knows, where a config.yaml is missing. */
static void note_header(struct differences *d, const struct record_header *a,
			const struct record_header *b)
{
	char left[64], right[64];

	snprintf(left, sizeof(left), "%u (%u x %u)", a->world_size, a->n_nodes, a->gpus_per_node);
	snprintf(right, sizeof(right), "%u (%u x %u)", b->world_size, b->n_nodes, b->gpus_per_node);
	note(d, "ranks", left, right);
	note(d, "model", a->model, b->model);
	note(d, "exchange", wire_exchange_name(a->exchange), wire_exchange_name(b->exchange));
	note(d, "data", wire_data_name(a->data), wire_data_name(b->data));
	note(d, "data-for", a->data_for, b->data_for);
	note(d, "layout", a->layout, b->layout);
}

/* The rest of the line of @versions that begins with the word @name; "" without one. */
static const char *version_of(const char *versions, const char *name, char *buf, size_t size)
{
	size_t n = strlen(name);

	buf[0] = '\0';
	for (const char *line = versions; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, n) == 0 && line[n] == ' ')
			snprintf(buf, size, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
	return buf;
}

/* Of each first word of a line in @versions, unless @unless_in has it, too. */
static void note_versions(struct differences *d, const char *versions, const char *a, const char *b,
			  const char *unless_in)
{
	char name[64], left[TEXT_MAX], right[TEXT_MAX];

	for (const char *line = versions; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, " \n"), line);
		if (name[0] && !(unless_in && version_of(unless_in, name, left, sizeof(left))[0]))
			note(d, name, version_of(a, name, left, sizeof(left)),
			     version_of(b, name, right, sizeof(right)));
	}
}

static struct differences find_differences(const struct compare_side *a,
					   const struct compare_side *b)
{
	struct differences d = {0};
	const char *va = a->versions ? a->versions : "", *vb = b->versions ? b->versions : "";

	note(&d, "command", a->info.command, b->info.command);
	note(&d, "decided by", a->rep.decided_by, b->rep.decided_by);
	note(&d, "way", report_way(&a->rep.header), report_way(&b->rep.header));
	note(&d, "NCCL took", a->rep.took, b->rep.took);
	if (a->config && b->config)
		note_options(&d, a, b);
	else
		note_header(&d, &a->rep.header, &b->rep.header);
	if (a->versions && b->versions) {
		note_versions(&d, va, va, vb, NULL);
		note_versions(&d, vb, va, vb, va);
	}
	return d;
}

/* --- what came out --------------------------------------------------------------------------- */

bool compare_is_beyond_noise(const struct report_stat *a, const struct report_stat *b)
{
	return a->n && b->n && (a->p75 < b->p25 || b->p75 < a->p25);
}

enum noise { NOISE_NONE, NOISE_WITHIN, NOISE_BEYOND }; /* none: computed, or not judged */

struct value {
	const char *name, *key, *unit;
	double a, b;
	bool is_ratio; /* a difference in percent makes sense */
	enum noise noise;
};

#define VALUES 9

static bool knows_noise(const struct report_stat *a, const struct report_stat *b)
{
	return a->n >= NOISE_STEPS_MIN && b->n >= NOISE_STEPS_MIN;
}

/* Exposed time is a part of the step: it varies no more than that does. */
static enum noise exposed_noise(const struct report *a, const struct report *b)
{
	double range_a = a->step_ns.p75 - a->step_ns.p25, range_b = b->step_ns.p75 - b->step_ns.p25;

	return fabs(b->exposed_ns - a->exposed_ns) > fmax(range_a, range_b) ? NOISE_BEYOND
									    : NOISE_WITHIN;
}

static void find_values(const struct report *a, const struct report *b, struct value ret[VALUES])
{
	bool has_steps = a->n_steps && b->n_steps, is_alike = !a->n_steps == !b->n_steps;
	bool is_judged = has_steps && knows_noise(&a->step_ns, &b->step_ns);
	enum noise step = !is_judged                                          ? NOISE_NONE
			  : compare_is_beyond_noise(&a->step_ns, &b->step_ns) ? NOISE_BEYOND
									      : NOISE_WITHIN;
	const struct value values[VALUES] = {
		{"ops", "ops", "", (double)a->n_ops, (double)b->n_ops, false, NOISE_NONE},
		{"steps", "steps", "", (double)a->n_steps, (double)b->n_steps, false, NOISE_NONE},
		{"ops a step", "ops_per_step", "", (double)a->ops_per_step, (double)b->ops_per_step,
		 false, NOISE_NONE},
		{"step, p50", "step_ms", "ms", a->step_ns.p50 / 1e6, b->step_ns.p50 / 1e6,
		 has_steps, step},
		{"modelled", "modelled_ms", "ms", a->modelled_ns / 1e6, b->modelled_ns / 1e6,
		 is_alike, NOISE_NONE},
		{"exposed", "exposed_ms", "ms", a->exposed_ns / 1e6, b->exposed_ns / 1e6, is_alike,
		 is_judged ? exposed_noise(a, b) : NOISE_NONE},
		{"injected", "injected_ms", "ms", a->injected_ns / 1e6, b->injected_ns / 1e6,
		 is_alike, NOISE_NONE},
		{"late, p50", "late_p50_us", "us", a->lateness_ns.p50 / 1e3,
		 b->lateness_ns.p50 / 1e3, true, NOISE_NONE},
		{"late, p99", "late_p99_us", "us", a->lateness_ns.p99 / 1e3,
		 b->lateness_ns.p99 / 1e3, true, NOISE_NONE},
	};

	memcpy(ret, values, sizeof(values));
}

static void print_value(const struct value *v, FILE *to)
{
	char percent[32] = "";

	if (v->is_ratio && v->a > 0)
		snprintf(percent, sizeof(percent), "%+.1f %%",
			 round((v->b - v->a) / v->a * 1000) / 10 + 0.0);
	else if (v->is_ratio && v->b != v->a)
		snprintf(percent, sizeof(percent), "from 0");
	fprintf(to, "   %-12s %-3s %14.*f %14.*f %10s%s\n", v->name, v->unit, v->unit[0] ? 3 : 0,
		v->a, v->unit[0] ? 3 : 0, v->b, percent,
		v->noise == NOISE_BEYOND   ? "  beyond the noise"
		: v->noise == NOISE_WITHIN ? "  within the noise"
					   : "");
}

static void print_noise(const struct report_stat *a, const struct report_stat *b, FILE *to)
{
	if (!knows_noise(a, b)) {
		fprintf(to,
			"   noise: not known from %llu timed step%s of A and %llu of B; take runs of "
			"more steps\n",
			(unsigned long long)a->n, a->n == 1 ? "" : "s", (unsigned long long)b->n);
		return;
	}
	fprintf(to,
		"   noise: the middle half of A's %llu steps took %.3f to %.3f ms, of B's %llu "
		"%.3f to %.3f ms\n",
		(unsigned long long)a->n, a->p25 / 1e6, a->p75 / 1e6, (unsigned long long)b->n,
		b->p25 / 1e6, b->p75 / 1e6);
}

/* Why figures of one side must not be believed. */
static void print_warnings(const char *side, const struct report *r, FILE *to)
{
	if (r->lost[0])
		fprintf(to, "   %s is NOT WHOLE: %s\n", side, r->lost);
	for (uint32_t i = 0; i < r->n_warnings; i++)
		fprintf(to, "   %s, warning: %s\n", side, r->warnings[i]);
}

void compare_print(const struct compare_side *a, const struct compare_side *b, FILE *to)
{
	CLEANUP(differences_deinit) struct differences d = find_differences(a, b);
	struct value values[VALUES];

	fprintf(to, "A: %s\nB: %s\n\n", a->dir, b->dir);
	fprintf(to, "%s\n",
		d.n ? "what differs in what was asked for"
		    : "nothing differs in what was asked for");
	for (size_t i = 0; i < d.n; i++)
		fprintf(to, "   %-16s A: %s\n   %-16s B: %s\n", d.list[i].what, d.list[i].a, "",
			d.list[i].b);
	if (!a->config || !b->config)
		fprintf(to,
			"   (%s no config.yaml that can be read: only what the records know was "
			"compared)\n",
			a->config   ? "B has"
			: b->config ? "A has"
				    : "A and B have");
	find_values(&a->rep, &b->rep, values);
	fprintf(to, "\n   %-12s %-3s %14s %14s %10s\n", "", "", "A", "B", "difference");
	for (size_t i = 0; i < VALUES; i++)
		print_value(&values[i], to);
	if (a->rep.n_steps && b->rep.n_steps)
		print_noise(&a->rep.step_ns, &b->rep.step_ns, to);
	if (!a->rep.n_steps)
		fprintf(to, "   A has no steps, its times are of all of the run: %s\n",
			a->rep.steps_how);
	if (!b->rep.n_steps)
		fprintf(to, "   B has no steps, its times are of all of the run: %s\n",
			b->rep.steps_how);
	print_warnings("A", &a->rep, to);
	print_warnings("B", &b->rep, to);
}

static json_t *stat_json(const struct report_stat *s)
{
	return json_pack("{s:f, s:f, s:f}", "p25", s->p25 / 1e6, "p50", s->p50 / 1e6, "p75",
			 s->p75 / 1e6);
}

struct json_t *compare_json(const struct compare_side *a, const struct compare_side *b)
{
	CLEANUP(differences_deinit) struct differences d = find_differences(a, b);
	json_t *asked = json_array(), *came = json_object();
	struct value values[VALUES];

	for (size_t i = 0; i < d.n; i++)
		json_array_append_new(asked, json_pack("{s:s, s:s, s:s}", "what", d.list[i].what,
						       "a", d.list[i].a, "b", d.list[i].b));
	find_values(&a->rep, &b->rep, values);
	for (size_t i = 0; i < VALUES; i++) {
		const struct value *v = &values[i];
		json_t *o = json_pack("{s:f, s:f}", "a", v->a, "b", v->b);

		if (o && v->is_ratio && v->a > 0)
			json_object_set_new(o, "percent", json_real((v->b - v->a) / v->a * 100));
		if (o && v->noise != NOISE_NONE)
			json_object_set_new(o, "is_beyond_noise",
					    json_boolean(v->noise == NOISE_BEYOND));
		json_object_set_new(came, v->key, o);
	}
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "a", a->dir, "b", b->dir, "asked", asked,
			 "values", came, "a_step_ms", stat_json(&a->rep.step_ns), "b_step_ms",
			 stat_json(&b->rep.step_ns));
}
