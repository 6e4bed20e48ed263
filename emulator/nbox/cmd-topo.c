/* nbox topo: the virtual cluster's fabric, as text, picture, JSON or fabric file. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "config/config.h"
#include "fabric/read/write.h"
#include "nbox/ask/configure.h"
#include "nbox/commands.h"
#include "nbox/topo/topo.h"

struct question {
	struct config *config;
	const char *file, *svg, *dot; /* borrowed; NULL: not wanted */
	bool is_json, is_yaml, is_list, has_fabric;
};

static const enum option_id taken[] = {
	CONFIG_PRESET, CONFIG_FABRIC,       CONFIG_NODES, CONFIG_WORLD, CONFIG_GPUS_PER_NODE,
	CONFIG_INTER,  CONFIG_DOMAIN_NODES, CONFIG_CABLE, CONFIG_ECMP,  CONFIG_OVERSUBSCRIPTION,
};

static void usage(FILE *to)
{
	fputs("usage: nbox topo --preset NAME|--fabric FILE [OPTION...]\n\n"
	      "Says what the virtual cluster is made of: nodes, network, links, bisection, and how long\n"
	      "collectives of 1 GiB take at least.\n\n",
	      to);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		option_print(&options[taken[i]], 26, options[taken[i]].default_text, to);
	option_help(COMMAND_TOPO, 26, to);
}

static int take_option(struct question *q, const struct option_word *w, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (w->id == taken[i])
			return config_take(q->config, w, err);
	switch ((int)w->id) {
	case FLAG_FABRIC_JSON:
		q->is_json = true;
		break;
	case FLAG_FABRIC_YAML:
		q->is_yaml = true;
		break;
	case FLAG_PRESETS:
		q->is_list = true;
		break;
	case FLAG_DRAWN_SVG:
		q->svg = w->value;
		break;
	case FLAG_DRAWN_DOT:
		q->dot = w->value;
		break;
	case FLAG_CONFIG:
		q->file = w->value;
		break;
	default:
		return err_set(err, EINVAL, "%s says nothing about a fabric; see nbox topo --help",
			       w->name);
	}
	return 0;
}

static int take_words(struct question *q, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_TOPO, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL,
				       "'%s': nbox topo takes options only; did you mean --preset "
				       "%s?",
				       argv[i], argv[i]);
		if (r == 0)
			r = take_option(q, &w, err);
	}
	return r;
}

static int find_fabric(struct question *q, struct err *err)
{
	int r = configure(q->config, q->file, err);

	if (r == 0 && !q->config->fabric)
		return err_set(err, EINVAL,
			       "which fabric? --preset NAME (nbox topo --list) or --fabric FILE");
	return r;
}

static int draw(const struct fabric *f, const char *path,
		int (*how)(const struct fabric *f, FILE *to), struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err), closed;

	if (r < 0)
		return r;
	r = how(f, to);
	closed = file_finish(to, path, err);
	return r < 0 ? r : closed;
}

static int answer(const struct question *q, struct err *err)
{
	const struct fabric *f = q->config->fabric;
	int r = 0;

	if (q->svg)
		r = draw(f, q->svg, topo_draw_svg, err);
	if (r == 0 && q->dot)
		r = draw(f, q->dot, topo_draw_dot, err);
	if (r < 0)
		return r;
	if (file_is_stdout(q->svg) || file_is_stdout(q->dot))
		return 0;
	if (q->is_yaml)
		fabric_write(f, stdout);
	else if (q->is_json)
		return topo_print_json(f, stdout);
	else
		topo_print(f, stdout);
	return 0;
}

int cmd_topo(int argc, char **argv)
{
	struct question q = {0};
	struct err err = {""};
	int r, code = 2;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage(stdout), 0;
	r = config_new(&q.config);
	if (r == 0)
		r = take_words(&q, argc, argv, &err);
	if (r == 0 && q.is_list) {
		topo_print_presets(stdout);
		config_free(q.config);
		return 0;
	}
	if (r == 0 && (q.is_yaml || q.is_json) && (file_is_stdout(q.svg) || file_is_stdout(q.dot)))
		r = err_set(&err, EINVAL,
			    "--yaml or --json beside a drawing on standard output would mix: draw "
			    "it to a file");
	if (r == 0)
		r = find_fabric(&q, &err);
	if (r == 0) {
		code = 1;
		r = answer(&q, &err);
	}
	config_free(q.config);
	if (r == 0)
		return 0;
	fprintf(stderr, "nbox topo: %s\n", err.text[0] ? err.text : strerror(-r));
	return code;
}
