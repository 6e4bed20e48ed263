/* See modelled.h. */
#include "nbox/perf/modelled.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "config/open-model.h"
#include "nbox/ask/configure.h"
#include "nbox/ask/honest.h"
#include "nbox/perf/collective.h"
#include "nbox/perf/draw.h"
#include "nbox/perf/rows-print.h"

struct modelled {
	struct config *config;
	struct perf_options perf;
	enum coll_kind kind;
	const char *file, *json, *svg;
	struct ask *ask;
	struct perf_rows rows;
};

static void modelled_deinit(struct modelled *m)
{
	perf_rows_deinit(&m->rows);
	ask_close(m->ask);
	config_free(m->config);
}

/* A flag that is none of the configuration's. Return: 0; -EINVAL with the sentence. */
static int take_flag(struct modelled *m, const struct option_word *w, struct err *err)
{
	const struct {
		enum option_id id;
		const char **text;
	} flags[] = {{FLAG_CONFIG, &m->file}, {FLAG_JSON, &m->json}, {FLAG_SVG, &m->svg}};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (flags[i].id != w->id)
			continue;
		*flags[i].text = w->value;
		return 0;
	}
	r = w->id == FLAG_ITERS || w->id == FLAG_WARMUP || w->id == FLAG_IN_PLACE
		    ? OPTION_NONE
		    : perf_options_take(&m->perf, w, err);
	return r == OPTION_NONE
		       ? err_set(err, EINVAL, "%s: only what is run has it: nbox perf --live ...",
				 w->name)
		       : r;
}

static int take_words(struct modelled *m, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int i = 2, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_PERF, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL,
				       "'%s' is one word too many; only the collective has no dash",
				       argv[i]);
		if (r == 0)
			r = w.id < CONFIG_OPTIONS ? config_take(m->config, &w, err)
						  : take_flag(m, &w, err);
	}
	return r < 0 ? r : perf_options_check(&m->perf, err);
}

static int write_svg(const struct modelled *m, struct err *err)
{
	char title[640], model[512], world[64];
	FILE *f;
	int r = file_create(m->svg, &f, err), drawn;

	if (r < 0)
		return err_prefix(err, r, "--svg");
	snprintf(title, sizeof(title), "%s, %s, %s", coll_kind_name(m->kind),
		 topology_print(&m->config->topology, world, sizeof(world)),
		 config_model(m->config, model, sizeof(model)));
	drawn = perf_draw_svg(&m->rows, title, f);
	r = file_finish(f, m->svg, err);
	return r < 0 ? err_prefix(err, r, "--svg") : drawn;
}

struct sentences {
	char text[4][768];
	const char *list[5];
	size_t n;
};

/* The first and the last size that are far above the bound. */
static int look_above(const struct modelled *m, struct sentences *w, struct err *err)
{
	const struct perf_row *first = NULL, *last = NULL, *row;
	uint32_t element = (uint32_t)coll_dtype_bytes(m->rows.dtype);
	char size[32], why[640];
	int r = 0;

	for (size_t i = 0; i < m->rows.n; i++) {
		row = &m->rows.rows[i];
		if (!honest_is_far_above(&row->answer, row->bytes))
			continue;
		first = first ? first : row;
		last = row;
	}
	for (row = first; r == 0 && row; row = row == last ? NULL : last) {
		r = honest_why(m->ask, m->kind, row->count * element, element, &row->answer, why,
			       sizeof(why), err);
		snprintf(w->text[w->n], sizeof(w->text[0]), "%s take %s",
			 units_print_bytes(row->bytes, size, sizeof(size)), why);
		w->list[w->n] = w->text[w->n];
		w->n++;
	}
	return r;
}

/* What-ifs that no time shows. */
static void look_unmet(const struct modelled *m, struct sentences *w)
{
	bool is_met = !config_moves_times(m->config);

	for (size_t i = 0; i < m->rows.n && !is_met; i++)
		is_met = m->rows.rows[i].answer.ns != m->rows.rows[i].answer.model_ns;
	if (!is_met)
		w->list[w->n++] = "the what-ifs add nothing to any of these times";
}

/* Return: 0; -ERANGE some time is below its bound. */
static int look_below(const struct modelled *m, struct err *err)
{
	size_t n = 0, first = 0;
	char size[32];

	for (size_t i = m->rows.n; i-- > 0;)
		if (honest_is_below(&m->rows.rows[i].answer)) {
			first = i;
			n++;
		}
	if (!n || strcmp(m->config->model, "none") == 0)
		return 0;
	return err_set(
		err, ERANGE,
		"%zu of %zu times are below the bound, such as %.2f us for %s, which nothing on "
		"this network can do in less than %.2f: model %s is wrong here",
		n, m->rows.n, m->rows.rows[first].answer.model_ns / 1e3,
		units_print_bytes(m->rows.rows[first].bytes, size, sizeof(size)),
		m->rows.rows[first].answer.bound_ns / 1e3, m->config->model);
}

/* Return: 0; negative errno with the sentence. */
static int show(const struct modelled *m, struct err *err)
{
	const struct perf_row *rows = m->rows.rows, *last = &rows[m->rows.n - 1];
	struct asked asked = {(int)m->rows.kind, (double)rows->bytes, (double)last->bytes};
	char network[640], calibration[256];
	struct sentences w = {.list = {ask_warning(m->ask)}, .n = ask_warning(m->ask) != NULL};
	struct perf_made made = {.config = m->config,
				 .network = ask_network(m->ask, &asked, network, sizeof(network)),
				 .decided_by = ask_decided_by(m->ask),
				 .calibration =
					 open_model_calibration(m->config, &asked, calibration,
								sizeof(calibration))};
	int r = look_above(m, &w, err);

	look_unmet(m, &w);
	made.warnings = w.list;
	made.n_warnings = w.n;
	if (r == 0 && !file_is_stdout(m->json) && !file_is_stdout(m->svg))
		rows_print(&m->rows, &made, stdout);
	if (r == 0 && m->json)
		r = rows_write_json(&m->rows, &made, m->json, err);
	if (r == 0 && m->svg)
		r = write_svg(m, err);
	return r < 0 ? r : look_below(m, err);
}

int perf_modelled(int argc, char **argv)
{
	CLEANUP(modelled_deinit) struct modelled m = {0};
	struct err err = {""};
	const char *op = argv[1];
	int r = config_new(&m.config);

	perf_options_init(&m.perf);
	if (r == 0)
		r = perf_take_collective(argv[1], &op, &err);
	if (r == 0)
		r = take_words(&m, argc, argv, &err);
	m.kind = r == 0 ? (enum coll_kind)coll_kind_parse(op) : COLL_ALLREDUCE;
	if (r == 0)
		r = perf_defaults(m.config);
	if (r == 0)
		r = ask_configure(m.config, m.file, &m.ask, &err);
	if (r == 0)
		r = perf_rows_ask(m.ask, m.config, &m.perf, m.kind, &m.rows, &err);
	if (r < 0) {
		fprintf(stderr, "nbox perf: %s\n", err.text[0] ? err.text : strerror(-r));
		return 2;
	}
	r = show(&m, &err);
	if (r < 0)
		fprintf(stderr, "nbox perf: %s\n", err.text);
	return r < 0;
}
