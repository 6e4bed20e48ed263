/* See retime.h. */
#include "nbox/retime/retime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "engine/record-write.h"
#include "nbox/doctor/paths.h"
#include "nbox/report/classes.h"
#include "nbox/report/expect.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/recall.h"
#include "nbox/report/summary.h"
#include "nbox/run/results.h"

/* A run with its folder, and with ops. */
static int load(const char *word, struct loaded_run *ret, struct err *err)
{
	int e = run_load(word, ret, err);

	if (e == 0 && !ret->dir[0])
		e = err_set(
			err, EINVAL,
			"%s: without its folder, where config.yaml is, nobody knows how the run was",
			word);
	if (e == 0 && ret->rec.n_ops == 0)
		e = err_set(err, ENODATA, "%s: the run has no op", word);
	return e;
}

/* Return: 0; negative errno with the sentence. */
static int merge(struct recorded *r, struct err *err)
{
	CLEANUP(freep) const struct record **recs = calloc(r->n_others + 1, sizeof(*recs));

	if (!recs)
		return err_set(err, ENOMEM, "out of memory");
	recs[0] = &r->run.rec;
	for (size_t i = 0; i < r->n_others; i++)
		recs[i + 1] = &r->others[i].rec;
	return merge_records(recs, r->n_others + 1, &r->merged, err);
}

int recorded_load_all(const char *const *words, size_t n, struct recorded *ret, struct err *err)
{
	struct paths paths;
	int e = paths_find(&paths, PATHS_MODELS, err);

	*ret = (struct recorded){.others = calloc(n, sizeof(*ret->others))};
	if (e == 0 && !ret->others)
		e = err_set(err, ENOMEM, "out of memory");
	if (e == 0)
		e = load(words[0], &ret->run, err);
	for (; e == 0 && ret->n_others + 1 < n; ret->n_others++)
		e = load(words[ret->n_others + 1], &ret->others[ret->n_others], err);
	if (e == 0 && ret->n_others)
		e = merge(ret, err);
	if (e == 0)
		e = rows_graph_make(ret->n_others ? &ret->merged : &ret->run.rec, &ret->graph, err);
	if (e < 0)
		recorded_deinit(ret);
	else
		snprintf(ret->models, sizeof(ret->models), "%s", paths.models);
	return e;
}

int recorded_load(const char *word, struct recorded *ret, struct err *err)
{
	return recorded_load_all(&word, 1, ret, err);
}

void recorded_deinit(struct recorded *r)
{
	rows_graph_deinit(&r->graph);
	record_deinit(&r->merged);
	for (size_t i = 0; i < r->n_others; i++)
		loaded_run_deinit(&r->others[i]);
	free(r->others);
	loaded_run_deinit(&r->run);
	*r = (struct recorded){.graph = {.n = 0}};
}

/* The real ranks of all runs: "0,1,2". Return: 0; -ENOMEM. */
static int set_real(const struct recorded *r, struct config *c)
{
	CLEANUP(bitmap_deinit) struct bitmap is_real = {0};
	CLEANUP(freep) char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f || bitmap_init(&is_real, r->merged.header.world_size) < 0) {
		if (f)
			fclose(f);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < r->merged.n_comms; i++)
		for (uint32_t k = 0; k < r->merged.comms[i].n_real; k++)
			bitmap_set(&is_real, r->merged.comms[i].real[k].world_rank);
	for (uint32_t i = 0, n = 0; i < r->merged.header.world_size; i++)
		if (bitmap_test(&is_real, i))
			fprintf(f, "%s%u", n++ ? "," : "", i);
	if (fclose(f) != 0)
		return -ENOMEM;
	return config_set(c, CONFIG_REAL, SOURCE_FLAG, text);
}

int recorded_config(const struct recorded *r, struct config **ret, struct err *err)
{
	char path[PATH_MAX + 16];
	struct config *c;
	int e = config_new(&c);

	if (e < 0)
		return err_set(err, ENOMEM, "out of memory");
	c->is_of_run = true;
	snprintf(path, sizeof(path), "%s/config.yaml", r->run.dir);
	e = config_file(c, path, err);
	if (e == 0 && r->n_others && set_real(r, c) < 0)
		e = err_set(err, ENOMEM, "out of memory");
	if (e < 0)
		config_free(c);
	else
		*ret = c;
	return e;
}

/* A layout that nobody gave has followed the nodes. */
static void warn_of_layout(const struct record_header *was, const struct config *c,
			   struct report *rep)
{
	const struct config_value *v = &c->values[CONFIG_LAYOUT];

	for (size_t i = 0;
	     i < v->n_items && v->source == SOURCE_FILE && was->world_size != c->world; i++)
		report_warn(rep, "assumed: layout %s follows the nodes; the run's was %s",
			    v->items[i].text, was->layout);
}

/* What the run's own summary says of the machine; what the replay says of itself. */
static void fill_report(const struct recorded *r, const struct config *c, struct retimed *ret)
{
	struct report *rep = &ret->report, was;

	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/summary.json", r->run.dir);
	if (run_report(&r->run, &was) == 0) {
		report_recall(&was, path);
		snprintf(rep->device, sizeof(rep->device), "%s", was.device);
	}
	snprintf(rep->network, sizeof(rep->network), "%s", ret->told.network);
	snprintf(rep->decided_by, sizeof(rep->decided_by), "%s", ret->told.decided_by);
	warn_of_layout(&r->run.rec.header, c, rep);
	if (ret->told.counts.n_total)
		report_warn(
			rep,
			"assumed: %llu all-gathers and reduce-scatters of communicators of another "
			"size have as many bytes in all as they had",
			(unsigned long long)ret->told.counts.n_total);
	if (ret->told.counts.n_kept)
		report_warn(rep,
			    "assumed: %llu all-reduces, broadcasts and reduces of communicators of "
			    "another size have the bytes that they had",
			    (unsigned long long)ret->told.counts.n_kept);
	if (ret->told.n_lost)
		report_warn(
			rep,
			"%llu of %u rows of the record wait for what it does not have, and are left "
			"out",
			(unsigned long long)ret->told.n_lost, r->graph.n);
}

/* Whose timeline each class has. Without memory that is not said. */
static void tell_classes(const struct recorded *r, const struct config *c, struct report *rep)
{
	CLEANUP(freep) struct report_origin *from = calloc(r->n_others + 1, sizeof(*from));

	if (!from)
		return;
	from[0] = (struct report_origin){r->run.dir, &r->run.rec};
	for (size_t i = 0; i < r->n_others; i++)
		from[i + 1] = (struct report_origin){r->others[i].dir, &r->others[i].rec};
	report_classes_of(rep, c, from, r->n_others ? r->n_others + 1 : 0);
}

static void on_warn(void *ctx, const char *sentence)
{
	report_warn(ctx, "%s", sentence);
}

int retime(const struct recorded *r, const struct config *c, struct retimed *ret, struct err *err)
{
	return retime_scaled(r, c, NULL, ret, err);
}

int retime_scaled(const struct recorded *r, const struct config *c, const struct delay_scale *scale,
		  struct retimed *ret, struct err *err)
{
	const char *const dirs[] = {r->models, NULL};
	struct report warnings = {.n_warnings = 0};
	const struct replay in = {.graph = &r->graph,
				  .config = c,
				  .dirs = dirs,
				  .scale = scale,
				  .sink = {on_warn, &warnings}};
	int e = c->n_failures
			? err_set(err, EINVAL,
				  "%s: a rank that fails is not re-timed: nbox run ends the job as in life",
				  c->failures[0].text)
			: replay_play(&in, &ret->rec, &ret->told, err);

	if (e < 0)
		return e;
	snprintf(ret->rec.header.retimed_of, sizeof(ret->rec.header.retimed_of), "%.255s",
		 r->run.dir);
	e = report_make(&ret->rec, &ret->report);
	if (e < 0) {
		record_deinit(&ret->rec);
		return err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < warnings.n_warnings; i++)
		report_warn(&ret->report, "%s", warnings.warnings[i]);
	fill_report(r, c, ret);
	tell_classes(r, c, &ret->report);
	report_expect_of(&ret->report, c, -1);
	return 0;
}

void retimed_deinit(struct retimed *r)
{
	record_deinit(&r->rec);
}

static int write_record(const struct record *rec, const char *path, struct err *err)
{
	struct record_writer *w;
	int r = record_create(path, &rec->header, &w, err);

	if (r < 0)
		return r;
	if (rec->job)
		record_job(w, rec->job, rec->job_bytes);
	for (uint64_t i = 0; i < rec->n_comms; i++)
		record_comm(w, &rec->comms[i]);
	for (uint64_t i = 0; i < rec->n_points; i++)
		record_point(w, &rec->points[i]);
	for (uint64_t i = 0; i < rec->n_ops; i++)
		record_op(w, &rec->ops[i]);
	for (uint64_t i = 0; i < rec->end.n_debts; i++)
		record_debt(w, (double)rec->end.debt_ns / (double)rec->end.n_debts);
	r = record_flush(w);
	if (r == 0)
		r = record_close(w);
	else
		record_close(w);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}

int retimed_write(const struct retimed *r, const struct config *c, const char *dir, bool has_record,
		  int argc, char *const argv[], struct err *err)
{
	struct results to;
	char path[PATH_MAX];
	FILE *f;
	int e = results_open(&to, dir, err);

	if (e == 0)
		e = results_describe(&to, argc, argv, NULL, err);
	if (e == 0 && has_record)
		e = write_record(&r->rec, results_path(&to, "record.nbox", path), err);
	if (e == 0)
		e = file_create(results_path(&to, "config.yaml", path), &f, err);
	if (e < 0)
		return e;
	e = config_write_run(c, to.dir, f);
	if (e == 0)
		e = file_finish(f, path, err);
	else
		fclose(f);
	return e < 0 ? e
		     : report_write_json(&r->report, -1, results_path(&to, "summary.json", path),
					 err);
}
