/* See modelled.h. */
#include "nbox/perf/modelled.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/ask/configure.h"
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
		if (*flags[i].text)
			return err_set(err, EINVAL, "%s %s: %s is given a second time", w->name,
				       w->value, w->name);
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
	char title[640], model[512];
	FILE *f = fopen(m->svg, "w");
	int r;

	if (!f)
		return err_set(err, errno, "--svg %s: cannot be written: %s", m->svg,
			       strerror(errno));
	snprintf(title, sizeof(title), "%s, %u ranks (%u nodes x %u), %s", coll_kind_name(m->kind),
		 m->config->world, m->config->topology.n_nodes, m->config->topology.gpus_per_node,
		 config_model(m->config, model, sizeof(model)));
	perf_draw_svg(&m->rows, title, f);
	r = file_close(f);
	return r < 0 ? err_set(err, -r, "--svg %s: cannot be written: %s", m->svg, strerror(-r))
		     : 0;
}

/* Return: 0; negative errno with the sentence. */
static int show(const struct modelled *m, struct err *err)
{
	char network[512];
	const char *warnings[1] = {ask_warning(m->ask)};
	const struct perf_made made = {.config = m->config,
				       .network = ask_network(m->ask, network, sizeof(network)),
				       .calibration = "not calibrated",
				       .warnings = warnings,
				       .n_warnings = warnings[0] != NULL};
	int r = 0;

	if (!m->json || strcmp(m->json, "-") != 0)
		rows_print(&m->rows, &made, stdout);
	if (m->json)
		r = rows_write_json(&m->rows, &made, m->json, err);
	return r == 0 && m->svg ? write_svg(m, err) : r;
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
