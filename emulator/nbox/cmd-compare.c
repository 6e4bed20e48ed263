/* nbox compare: two runs side by side. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/report/compare.h"
#include "nbox/report/live-run.h"

static int usage(void)
{
	fputs("usage: nbox compare [--json] A B\n\n"
	      "Two runs side by side: what differs in what was asked for (command, options, "
	      "versions), then steps, times and lateness,\n"
	      "with the difference of B from A in percent. A step's time differs beyond the noise "
	      "when the middle halves of both runs'\n"
	      "steps do not meet. A and B are results directories or names of runs "
	      "below " LIVE_RUN_TOP "/ (nbox list).\n",
	      stdout);
	return 0;
}

static int print(const struct compare_side *a, const struct compare_side *b, bool is_json)
{
	CLEANUP(json_freep) json_t *o = NULL;

	if (!is_json)
		return compare_print(a, b, stdout), 0;
	o = compare_json(a, b);
	return o && json_dumpf(o, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF ? 0 : 1;
}

int cmd_compare(int argc, char **argv)
{
	CLEANUP(freep) struct compare_side *sides = calloc(2, sizeof(*sides));
	const char *words[2];
	struct option_word w;
	struct err err = {""};
	bool is_json = false;
	int n = 0, r = 0, code;

	for (int i = 1; i < argc && sides;) {
		r = option_take(COMMAND_COMPARE, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		if (r == 0)
			is_json = true;
		else if (r == OPTION_NONE && n == 2)
			err_set(&err, EINVAL, "two runs at a time: '%s', '%s' and '%s'", words[0],
				words[1], argv[i]);
		else if (r == OPTION_NONE)
			words[n++] = argv[i++];
		if (err.text[0]) {
			fprintf(stderr, "nbox compare: %s\n", err.text);
			return 2;
		}
	}
	r = 0;
	if (sides && n < 2) {
		fprintf(stderr,
			"nbox compare: which two runs? nbox compare A B; nbox list names them\n");
		return 2;
	}
	for (int i = 0; i < 2 && sides && r == 0; i++)
		r = compare_load(words[i], &sides[i], &err);
	if (!sides || r < 0)
		fprintf(stderr, "nbox compare: %s\n", sides ? err.text : "out of memory");
	code = !sides ? 1 : r < 0 ? 2 : print(&sides[0], &sides[1], is_json);
	for (int i = 0; i < 2 && sides; i++)
		compare_deinit(&sides[i]);
	return code;
}
