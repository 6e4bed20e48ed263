/* See retime.h. */
#include "nbox/retime/retime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "config/open-model.h"
#include "engine/record-write.h"
#include "nbox/doctor/paths.h"
#include "nbox/report/classes.h"
#include "nbox/report/expect.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/recall.h"
#include "nbox/report/steps-told.h"
#include "nbox/report/summary.h"
#include "nbox/retime/told.h"
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

static int find_worlds(struct recorded *r, struct err *err)
{
	CLEANUP(freep) const struct record **recs = calloc(r->n_others + 1, sizeof(*recs));

	if (!recs)
		return err_set(err, ENOMEM, "out of memory");
	recs[0] = &r->run.rec;
	for (size_t i = 0; i < r->n_others; i++)
		recs[i + 1] = &r->others[i].rec;
	return worlds_make(recs, r->n_others + 1, &r->worlds, err);
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
	if (e == 0)
		e = find_worlds(ret, err);
	if (e == 0)
		e = rows_graph_make(ret->worlds.recs[0], &ret->graph, err);
	if (e < 0)
		recorded_deinit(ret);
	else
		snprintf(ret->models, sizeof(ret->models), "%s", paths.models);
	return e;
}

void recorded_deinit(struct recorded *r)
{
	rows_graph_deinit(&r->graph);
	worlds_deinit(&r->worlds);
	for (size_t i = 0; i < r->n_others; i++)
		loaded_run_deinit(&r->others[i]);
	free(r->others);
	loaded_run_deinit(&r->run);
	*r = (struct recorded){.graph = {.n = 0}};
}

/* The ranks of the world @to, "0,1,2", that compute what the real ones did. Return: 0; negative
 * errno with the sentence. */
static int set_real(const struct record *rec, const struct world *from, const struct world *to,
		    struct config *c, struct err *err)
{
	CLEANUP(bitmap_deinit) struct bitmap is_real = {0};
	CLEANUP(freep) char *text = NULL;
	size_t size = 0;
	FILE *f = NULL;
	int e = bitmap_init(&is_real, to->size);

	for (uint64_t i = 0; i < rec->n_comms && e == 0; i++)
		for (uint32_t k = 0; k < rec->comms[i].n_real && e == 0; k++) {
			uint32_t was = rec->comms[i].real[k].world_rank;
			int64_t rank = world_rank(from, to, was);

			if (rank >= 0)
				bitmap_set(&is_real, (uint32_t)rank);
			else
				e = err_set(
					err, EINVAL,
					"what rank %u of the run computes nobody does in a world of %u ranks",
					was, to->size);
		}
	if (e == -EINVAL)
		return e;
	f = e == 0 ? open_memstream(&text, &size) : NULL;
	for (uint32_t i = 0, n = 0; f && i < to->size; i++)
		if (bitmap_test(&is_real, i))
			fprintf(f, "%s%u", n++ ? "," : "", i);
	if (!f || fclose(f) != 0 || config_set(c, CONFIG_REAL, SOURCE_FLAG, text) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
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

int recorded_finish(const struct recorded *r, struct config *c, struct err *err)
{
	const struct record *rec = r->graph.rec;
	struct world from, to;
	int e = world_of_record(&rec->header, &from, err);

	if (e < 0 || (!from.n_layouts && rec == &r->run.rec && !config_is_set(c, CONFIG_WITH)))
		return e < 0 ? e : config_finish(c, err);
	/* those of the run may be outside the new world, which is known only then */
	e = config_set(c, CONFIG_REAL, SOURCE_FLAG, "0");
	e = e == 0 ? config_finish(c, err) : e;
	if (e < 0)
		return e;
	world_of_config(c, &to);
	e = world_check(&from, &to, err);
	e = e == 0 ? set_real(rec, &from, &to, c, err) : e;
	return e == 0 ? config_finish(c, err) : e;
}

int recorded_check_models(const struct recorded *r, const struct config *c, struct err *err)
{
	const char *const dirs[] = {r->models, NULL};
	struct delay_chain *chain = NULL;
	int e = open_model(c, dirs, &chain, err);

	delay_free(chain);
	return e;
}

/* What the run's own summary says of the machine; what the replay says of itself. */
static void fill_report(const struct recorded *r, const struct config *c, struct report *was,
			struct retimed *ret)
{
	struct report *rep = &ret->report;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/summary.json", r->run.dir);
	report_recall(was, path);
	snprintf(rep->device, sizeof(rep->device), "%s", was->device);
	snprintf(rep->network, sizeof(rep->network), "%s", ret->told.network);
	snprintf(rep->decided_by, sizeof(rep->decided_by), "%s", ret->told.decided_by);
	warn_of_layout(&r->run.rec.header, c, rep);
	told_counts(&ret->told.counts, &r->worlds.sizes,
		    r->run.rec.header.world_size != c->world ? &r->declared : NULL, rep);
	if (ret->told.n_lost && !ret->told.ended[0])
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
	CLEANUP(freep) uint32_t *was = calloc(c->n_real, sizeof(*was));
	struct world then, now;
	size_t n = 0;

	if (!from || !was || world_of_record(&r->run.rec.header, &then, NULL) < 0)
		return;
	world_of_config(c, &now);
	for (size_t i = 0; i < c->n_real; i++)
		was[i] = (uint32_t)world_rank(&now, &then, c->real[i]);
	from[n++] = (struct report_origin){r->run.dir, &r->run.rec, was};
	for (size_t i = 0; i < r->n_others; i++)
		if (r->others[i].rec.header.n_nodes == r->run.rec.header.n_nodes)
			from[n++] =
				(struct report_origin){r->others[i].dir, &r->others[i].rec, was};
	report_classes_of(rep, c, from, n > 1 ? n : 0);
}

static void on_warn(void *ctx, const char *sentence)
{
	report_warn(ctx, "%s", sentence);
}

int retime_check(const struct config *c, struct err *err)
{
	static const enum option_id ids[] = {CONFIG_EXCHANGE, CONFIG_DATA, CONFIG_DATA_FOR,
					     CONFIG_SPLIT,    CONFIG_LINK, CONFIG_STORE,
					     CONFIG_METRICS};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (c->values[ids[i]].source == SOURCE_FLAG)
			return err_set(err, EINVAL,
				       "--%s: a record is re-timed without it; nbox run has it",
				       options[ids[i]].name);
	return 0;
}

int retime(const struct recorded *r, const struct config *c, struct retimed *ret, struct err *err)
{
	return retime_scaled(r, c, NULL, ret, err);
}

int retime_scaled(const struct recorded *r, const struct config *c, const struct delay_scale *scale,
		  struct retimed *ret, struct err *err)
{
	const char *const dirs[] = {r->models, NULL};
	struct report warnings = {.n_warnings = 0}, was;
	const struct replay in = {.graph = &r->graph,
				  .config = c,
				  .dirs = dirs,
				  .scale = scale,
				  .sizes = &r->worlds.sizes,
				  .declared = &r->declared,
				  .sink = {.warn = on_warn, .ctx = &warnings}};
	int e = retime_check(c, err);

	e = e == 0 ? replay_play(&in, &ret->rec, &ret->told, err) : e;
	if (e < 0)
		return e;
	snprintf(ret->rec.header.retimed_of, sizeof(ret->rec.header.retimed_of), "%.255s",
		 r->run.dir);
	e = run_report(&r->run, &was);
	ret->rec.header.n_warm_up = was.n_warm_up;
	e = e == 0 ? report_make(&ret->rec, &ret->report) : e;
	e = e == 0 ? report_steps_told(&ret->report, &ret->rec, c) : e;
	if (e < 0) {
		record_deinit(&ret->rec);
		return err_set(err, ENOMEM, "out of memory");
	}
	if (ret->told.ended[0]) /* first: all other figures are those before */
		report_warn(&ret->report,
			    "%s; what it does then no record knows: %llu of %u rows are left out",
			    ret->told.ended, (unsigned long long)ret->told.n_lost, r->graph.n);
	for (uint32_t i = 0; i < warnings.n_warnings; i++)
		report_warn(&ret->report, "%s", warnings.warnings[i]);
	fill_report(r, c, &was, ret);
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
