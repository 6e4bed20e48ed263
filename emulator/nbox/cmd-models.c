/* nbox models: what can be given to --model, --links and --what-if, in groups. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "config/config.h"
#include "config/failure.h"
#include "config/link-change.h"
#include "config/resharding.h"
#include "engine/delay-plugin.h"
#include "nbox/commands.h"
#include "nbox/doctor/paths.h"

#define NAMES_MAX 256

enum group { GROUP_SCHEDULERS, GROUP_LINKS, GROUP_WHOLE, GROUP_WHAT_IFS, GROUPS };

static const char *const headings[GROUPS] = {
	"schedulers (--model): which messages an op has, on a fabric",
	"link models (--links, --model): what a message costs",
	"whole-op models (--model): what an op takes",
	"what-ifs (--what-if):",
};

/* What-ifs that no plug-in does. */
static const struct {
	const char *name, *help;
} own[] = {{"fail", failure_help},
	   {"desync", failure_desync_help},
	   {"link", link_change_help},
	   {"load", link_change_load_help},
	   {"xmesh", resharding_help}};

struct listing {
	enum group group; /* that is printed */
	const char *only; /* name; NULL: all */
	int n_printed;
};

static enum group group_of(const struct nbox_delaymodel *m)
{
	return m->flags & NBOX_DECORATOR ? GROUP_WHAT_IFS
	       : m->plan                 ? GROUP_SCHEDULERS
	       : m->op                   ? GROUP_WHOLE
					 : GROUP_LINKS;
}

static void print_model(void *ctx, const struct nbox_delaymodel *m, const char *path)
{
	struct listing *l = ctx;

	if (group_of(m) != l->group || (l->only && strcmp(l->only, m->name) != 0))
		return;
	if (l->n_printed++ == 0)
		printf("%s%s\n", l->only || l->group == GROUP_SCHEDULERS ? "" : "\n",
		       headings[l->group]);
	printf("  %-10s %s\n", m->name, m->summary);
	for (const struct nbox_param *p = m->params; p && p->name; p++) {
		char left[64];

		snprintf(left, sizeof(left), "%s=<%s>", p->name, p->unit);
		printf("      %-22s %s (%s%s)\n", left, p->help, p->default_text ? "default " : "",
		       p->default_text ? p->default_text : "must be given");
	}
	(void)path;
}

/* Keys that the plug-ins among them have from nbox. */
static void print_scope(void)
{
	puts("  each but fail, desync, link, load and xmesh, which have keys of their own, takes besides:\n"
	     "      from=<time or steps>   since when, after the run's first op (default 0s); steps: see --steps\n"
	     "      for=<time or steps>    for how long (default: to the end)\n"
	     "      every=<time or steps>  and again so much later, for ever (default: once)\n"
	     "      op=<kinds>             on these ops alone: allreduce+broadcast (default all)\n"
	     "      bytes=<from-to>        on ops of that size alone: 1MiB-64MiB, 1MiB- (default any)\n"
	     "      communicator=<which>   on ops of: world, an axis of the layout, a number of the record (default any)\n"
	     "      rank=<ranks>, node=<nodes>, rack=<leaves>  of these ranks alone (default all)");
}

static void print_own(struct listing *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (l->only && strcmp(l->only, own[i].name) != 0)
			continue;
		if (l->n_printed++ == 0)
			printf("%s%s\n", l->only ? "" : "\n", headings[GROUP_WHAT_IFS]);
		printf("%s", own[i].help);
	}
}

/* What "the cluster's" means. */
static void print_network(void)
{
	static const enum option_id ids[] = {CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH,
					     CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH};

	printf("\nthe cluster's network, where a model is given no other:\n");
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		printf("  --%-20s %s (default %s)\n", options[ids[i]].name, options[ids[i]].help,
		       options[ids[i]].default_text);
}

struct names {
	char text[NAMES_MAX][64];
	size_t n;
};

static void add_name(void *ctx, const struct nbox_delaymodel *m, const char *path)
{
	struct names *names = ctx;

	(void)path;
	if (names->n < NAMES_MAX)
		snprintf(names->text[names->n++], sizeof(names->text[0]), "%s", m->name);
}

/* No model has the name @name. */
static int unknown(const char *name, const char *const *dirs, struct err *err)
{
	static struct names names;
	const char *list[NAMES_MAX + ARRAY_SIZE(own)], *near;
	int r = delay_list(dirs, add_name, &names, err);

	for (size_t i = 0; i < names.n; i++)
		list[i] = names.text[i];
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		list[names.n + i] = own[i].name;
	if (r < 0)
		return r;
	near = suggest(name, list, names.n + ARRAY_SIZE(own));
	return err_set(err, ENOENT,
		       "there is no model or what-if '%.64s'%s%s%s nbox models lists all", name,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ";");
}

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox models [NAME]\n\nLists the delay models (--model NAME:key=value,...) and the "
		"what-ifs (--what-if\nNAME:key=value,...), or the one of that name, with their parameters: from "
		"nbox's own folder\nand from NBOX_MODEL_PATH.\n");
	return code;
}

int cmd_models(int argc, char **argv)
{
	const char *dirs[2] = {NULL, NULL};
	struct listing l = {0};
	struct err err = {""};
	struct paths paths;
	struct option_word w;
	int n = 0, n_on_hops = 0, i = 1;

	if (argc > 1 && argv[1][0] == '-') {
		if (option_take(COMMAND_MODELS, argc, argv, &i, &w, &err) == 0)
			return usage(stdout, 0); /* it has no other */
		fprintf(stderr, "nbox models: %s\n", err.text);
		return 2;
	}
	if (argc > 2) {
		fprintf(stderr, "nbox models: one name at a time: '%s' and '%s'\n", argv[1],
			argv[2]);
		return 2;
	}
	l.only = argc > 1 ? argv[1] : NULL;
	if (paths_find(&paths, PATHS_MODELS, &err) < 0)
		goto failed;
	dirs[0] = paths.models;
	for (; l.group < GROUPS; l.group++) {
		l.n_printed = 0;
		if (delay_list(dirs, print_model, &l, &err) < 0)
			goto failed;
		if (l.group == GROUP_WHAT_IFS && l.n_printed)
			print_scope();
		if (l.group == GROUP_WHAT_IFS)
			print_own(&l);
		n += l.n_printed;
		n_on_hops += l.group == GROUP_LINKS || l.group == GROUP_WHOLE ? l.n_printed : 0;
		if (l.group == GROUP_WHOLE && n_on_hops)
			print_network();
	}
	if (n)
		return 0;
	unknown(l.only, dirs, &err);
failed:
	fprintf(stderr, "nbox models: %s\n", err.text);
	return n || !dirs[0] ? 1 : 2;
}
