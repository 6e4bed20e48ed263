/* nbox models: what can be given to --model and --what-if. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/paths.h"
#include "config/failure.h"
#include "engine/delay.h"

static void print_model(void *ctx, const struct nbox_delaymodel *m, const char *path)
{
	int *decorators = ctx;

	if (!!(m->flags & NBOX_DECORATOR) != *decorators)
		return;
	printf("  %-10s %s\n", m->name, m->summary);
	for (const struct nbox_param *p = m->params; p && p->name; p++) {
		char left[64];

		snprintf(left, sizeof(left), "%s=<%s>", p->name, p->unit);
		printf("      %-22s %s (%s%s)\n", left, p->help, p->default_text ? "default " : "",
		       p->default_text ? p->default_text : "must be given");
	}
	(void)path;
}

int cmd_models(int argc, char **argv)
{
	const char *dirs[2] = { NULL, NULL };
	struct err err = { "" };
	struct paths paths;

	if (argc > 1) {
		int is_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

		fprintf(is_help ? stdout : stderr,
			"usage: nbox models\n\nLists the delay models (--model NAME:key=value,...) and the "
			"what-ifs (--what-if\nNAME:key=value,...), from nbox's own folder and from "
			"NBOX_MODEL_PATH.\n");
		return is_help ? 0 : 2;
	}
	if (paths_find(&paths, PATHS_MODELS, &err) < 0)
		goto failed;
	dirs[0] = paths.models;
	for (int decorators = 0; decorators <= 1; decorators++) {
		printf("%s\n", decorators ? "\nwhat-ifs (--what-if):" : "models (--model):");
		if (delay_list(dirs, print_model, &decorators, &err) < 0)
			goto failed;
		if (decorators)
			fputs(failure_help, stdout);
	}
	return 0;
failed:
	fprintf(stderr, "nbox models: %s\n", err.text);
	return 1;
}
