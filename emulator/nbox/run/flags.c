/* See flags.h. */
#include "nbox/run/flags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/run/job.h"

static const struct {
	const char *flag, *arg, *help;
} flags[] = {
	{"--config", "FILE", "cluster file (YAML); also NBOX_CONFIG"},
	{"--procs", "N",
	 "local processes to start; default: one a real rank, one for a launcher such as torchrun"},
	{"--launcher", NULL,
	 "COMMAND starts the ranks itself, such as a script that calls torchrun"},
	{"--name", "NAME", "results go to nbox-out/NAME: other commands know the run by it"},
	{"--json", "FILE", "also write the summary to FILE"},
	{"--device", "D",
	 "auto, host (stand-ins for CUDA and NCCL on the CPU) or cuda; default auto"},
	{"--plain", NULL, "without nbox: only start the processes, as a baseline"},
	{"--dry-run", NULL, "check everything, print what would run, start nothing"},
	{"--quiet", NULL, "no summary on the terminal"},
	{"--help", NULL, "this text"},
};
const char *const run_flags[] = {"--config", "--procs", "--launcher", "--name",  "--json",
				 "--device", "--plain", "--dry-run",  "--quiet", "--help"};
const size_t n_run_flags = ARRAY_SIZE(run_flags);

void run_help(FILE *f, const struct config *defaults)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		fprintf(f, "  %-10s %-11s %s\n", flags[i].flag, flags[i].arg ? flags[i].arg : "",
			flags[i].help);
	fprintf(f, "\n");
	config_help(f, defaults);
}

int run_arg(struct run *r, int argc, char **argv, int *index, struct err *err)
{
	const char *word = argv[*index], *value = NULL;
	size_t len = strcspn(word, "="), i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (strlen(flags[i].flag) == len && strncmp(word, flags[i].flag, len) == 0)
			break;
	if (i == ARRAY_SIZE(flags))
		return CONFIG_NOT_MINE;
	if (!flags[i].arg && word[len])
		return err_set(err, EINVAL, "%s takes no value", flags[i].flag);
	if (flags[i].arg) {
		value = word[len] ? word + len + 1 : *index + 1 < argc ? argv[++*index] : NULL;
		if (!value || !value[0] || (!word[len] && !strncmp(value, "--", 2)))
			return err_set(err, EINVAL, "%s needs a value: %s", flags[i].flag,
				       flags[i].help);
	}
	++*index;
	if (value && (r->flags_seen & 1u << i))
		return err_set(err, EINVAL, "%s %s: %s is given a second time", flags[i].flag,
			       value, flags[i].flag);
	r->flags_seen |= 1u << i;
	if (strcmp(flags[i].flag, "--config") == 0)
		r->config_file = value;
	else if (strcmp(flags[i].flag, "--json") == 0)
		r->json = value;
	else if (strcmp(flags[i].flag, "--name") == 0)
		r->name = value;
	else if (strcmp(flags[i].flag, "--device") == 0)
		r->device_text = value;
	else if (strcmp(flags[i].flag, "--launcher") == 0)
		r->is_launcher = true;
	else if (strcmp(flags[i].flag, "--plain") == 0)
		r->is_plain = true;
	else if (strcmp(flags[i].flag, "--dry-run") == 0)
		r->is_dry = true;
	else if (strcmp(flags[i].flag, "--quiet") == 0)
		r->is_quiet = true;
	else if (strcmp(flags[i].flag, "--procs") == 0) {
		if (units_count(value, &r->n_procs, err) < 0 || r->n_procs == 0 ||
		    r->n_procs > JOB_PROCS_MAX)
			return err_set(err, EINVAL, "--procs: '%s' is no number from 1 to %d",
				       value, JOB_PROCS_MAX);
	}
	return 0;
}
