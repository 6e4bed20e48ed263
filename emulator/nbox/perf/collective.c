/* See collective.h. */
#include "nbox/perf/collective.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "nbox-perf/options.h"
#include "nbox/run/flags.h"
#include "schedule/coll.h"

static const char *const *ops(void)
{
	return options[FLAG_OP].choices;
}

int perf_defaults(struct config *c)
{
	static const struct {
		enum option_id id;
		const char *variable, *text;
	} defaults[] = {
		{CONFIG_DATA, "NBOX_DATA", "none"},
		{CONFIG_REAL, "NBOX_REAL", "0"},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(defaults); i++)
		if (!config_is_set(c, defaults[i].id) && !getenv(defaults[i].variable) &&
		    !(defaults[i].id == CONFIG_REAL &&
		      (config_is_set(c, CONFIG_AS_NODE) || getenv("NBOX_AS_NODE"))))
			r = config_set(c, defaults[i].id, SOURCE_DEFAULT, defaults[i].text);
	return r;
}

void perf_usage(FILE *f)
{
	struct config *c = NULL;

	fprintf(f,
		"usage: nbox perf COLLECTIVE [-b MIN] [-e MAX] [-f FACTOR | -i STEP] [--dtype TYPE] [--json FILE] [--svg FILE]\n"
		"                 [OPTION of a cluster...]\n"
		"       nbox perf --live COLLECTIVE [-b MIN] ... [-n ITERATIONS] [-w WARM-UPS] [--in-place] [OPTION of nbox run...]\n\n"
		"Prints nccl-tests' table for a virtual world. COLLECTIVE: ");
	for (size_t i = 0; i < PERF_OPS; i++)
		fprintf(f, "%s%s", ops()[i], i + 1 < PERF_OPS ? ", " : ".\n\n");
	fprintf(f,
		"Sizes as in nccl-tests: bytes, or with K, M, G (binary), or as 25MB, 1GiB. The model is asked for each size; nothing is started.\n"
		"Behind each time stands the bound, which no op can be below, and how many times as long the op takes.\n"
		"With --live real ranks run the ops through libnbox.so: one, unless --real or --as-node says otherwise. The\n"
		"data policy is none, unless given. The table comes at the end; its last column is what this machine took.\n"
		"The results directory is as nbox run's.\n\n");
	if (config_new(&c) == 0 && perf_defaults(c) == 0)
		run_help(COMMAND_PERF, f, c);
	config_free(c);
}

int perf_take_collective(const char *word, const char **ret_name, struct err *err)
{
	int kind = coll_kind_parse(word);
	const char *near;

	for (size_t i = 0; kind >= 0 && i < PERF_OPS; i++) {
		if (coll_kind_parse(ops()[i]) != kind)
			continue;
		*ret_name = ops()[i];
		return 0;
	}
	if (kind >= 0)
		return err_set(
			err, EINVAL,
			"there is no benchmark of '%s'; nbox perf --help lists those that there are",
			word);
	near = suggest(word, ops(), PERF_OPS);
	return err_set(err, EINVAL, "unknown collective '%s'%s%s%s nbox perf --help lists them",
		       word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ";");
}
