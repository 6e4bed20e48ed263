/* See prepare.h. */
#include "nbox/run/prepare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "base/units.h"
#include "config/open-model.h"
#include "kernels/table.h"
#include "nbox/doctor/driver.h"
#include "nbox/report/live-run.h"
#include "nbox/report/runs.h"
#include "nbox/run/full-mode.h"
#include "nbox/run/launcher.h"
#include "nbox/run/program.h"
#include "nbox/run/results.h"
#include "nbox/run/script.h"

extern char **environ;

static int parse_device(struct run *run, struct err *err)
{
	const char *d = run->device_text;

	if (!d || strcmp(d, "auto") == 0)
		run->device = RUN_DEVICE_AUTO;
	else if (strcmp(d, "host") == 0)
		run->device = RUN_DEVICE_HOST;
	else if (strcmp(d, "cuda") == 0)
		run->device = RUN_DEVICE_CUDA;
	else
		return err_set(err, EINVAL, "--device: '%s' is none of auto, host, cuda", d);
	return 0;
}

/* The model and the what-ifs as nboxd will load them: an error now is better than
 * one from a process behind us. */
static int check_model(struct run *run, struct err *err)
{
	const char *dirs[] = {run->paths.models, NULL};
	const struct asked asked = {.kind = -1};
	struct delay_chain *chain = NULL;
	int r = open_model(run->config, dirs, &chain, err);

	if (r == 0)
		open_model_network(run->config, chain, &asked, run->network, sizeof(run->network));
	if (r == 0 && delay_warning(chain))
		snprintf(run->warning, sizeof(run->warning), "%s", delay_warning(chain));
	delay_free(chain);
	return r;
}

/* The user named no launcher, so nbox run will start the command once for each rank: does the
 * command start ranks, too? */
static void look_for_ranks(struct run *run)
{
	size_t n = run->config->n_real;
	char what[256];
	const char *option;

	if (run->printer || run->is_launcher || run->n_procs || n < 2 ||
	    !script_starts_ranks(run->command, what, sizeof(what), &option))
		return;
	snprintf(
		run->hint, sizeof(run->hint),
		"the command seems to start its ranks itself (%s), and is started %zu times, once for each real rank: "
		"say %s, or --procs %zu if that is meant",
		what, n, option, n);
	plain_text(run->hint);
}

/* --device cuda: said now, not by each worker. With auto the choice was made by what is here. */
static int check_driver(const struct run *run, struct err *err)
{
	struct err why = {""};
	int r = run->device_text && strcmp(run->device_text, "cuda") == 0 && !run->is_plain
			? driver_check(&why)
			: 0;

	return r < 0 ? err_set(err, -r, "--device cuda: %s; without a GPU: --device host", why.text)
		     : 0;
}

/* --gpu, or the variable that it stands for. A table's path is made whole, since the job may go
 * elsewhere. */
static int check_kernels(struct run *run, struct err *err)
{
	const char *variable = getenv("NBOX_HOST_KERNEL_TIME"),
		   *spec = run->gpu ? run->gpu : variable;
	const char *name = run->gpu ? "--gpu" : "NBOX_HOST_KERNEL_TIME";
	CLEANUP(kernel_table_freep) struct kernel_table *table = NULL;
	uint64_t n;
	int r;

	if (run->gpu && !run->gpu[0])
		return err_set(err, EINVAL, "--gpu needs a card such as h100, a table or a time");
	if (run->gpu && run->device != RUN_DEVICE_HOST)
		return err_set(
			err, EINVAL,
			"--gpu %s: says how long kernels take without a GPU, but the job is to run on "
			"this machine's; leave it out, or say --device host",
			run->gpu);
	if (run->device != RUN_DEVICE_HOST || !spec || !spec[0])
		return 0;
	if (run->gpu && units_count(run->gpu, &n, NULL) == 0)
		return err_set(
			err, EINVAL,
			"--gpu %s: is no card such as h100; did you mean --gpus-per-node %s?",
			run->gpu, run->gpu);
	r = kernel_table_open(spec, &table, err);
	if (r < 0)
		return err_prefix(err, r, "%s", name);
	snprintf(run->compute, sizeof(run->compute), "%s", table->what);
	if (!kernel_table_is_file(spec))
		snprintf(run->kernels, sizeof(run->kernels), "%s", spec);
	else if (!realpath(spec, run->kernels))
		return err_set(err, errno, "%s: %s: %s", name, spec, strerror(errno));
	return 0;
}

/* --name: a folder of its own below nbox-out. It goes before NBOX_OUT and a file's out:, as each
 * flag. */
static int take_name(struct run *run, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;
	bool is_there;
	int r = runs_check_name(run->name, err);

	if (r < 0)
		return r;
	if (run->is_plain)
		return err_set(err, EINVAL, "--name %s: a run with --plain leaves no results",
			       run->name);
	if (run->config->values[CONFIG_OUT].source == SOURCE_FLAG)
		return err_set(err, EINVAL,
			       "--name %s: the results go to %s already; give one of --name and "
			       "--out",
			       run->name, config_text(run->config, CONFIG_OUT));
	snprintf(path, sizeof(path), LIVE_RUN_TOP "/%s/record.nbox", run->name);
	is_there = lstat(path, &st) == 0; /* a start that failed leaves a folder without one */
	snprintf(path, sizeof(path), LIVE_RUN_TOP "/%s", run->name);
	if (is_there)
		return err_set(err, EEXIST,
			       "--name %s: %s is there; choose another name, or remove it",
			       run->name, path);
	return config_set(run->config, CONFIG_OUT, SOURCE_FLAG, path);
}

/* --with: names of runs become their records, for nboxd knows no names. */
static int find_records(struct run *run, struct err *err)
{
	struct config_value *v = &run->config->values[CONFIG_WITH];
	char found[PATH_MAX], path[PATH_MAX + 16];

	for (size_t i = 0; i < v->n_items; i++) {
		char *whole;

		snprintf(path, sizeof(path), "%s/record.nbox", runs_find(v->items[i].text, found));
		whole = realpath(access(path, F_OK) == 0 ? path : found, NULL);
		if (!whole)
			return err_prefix(err, runs_not_found(v->items[i].text, err), "--with");
		free(v->items[i].text);
		v->items[i].text = whole;
	}
	return 0;
}

int run_prepare(struct run *run, struct err *err)
{
	struct config *c = run->config;
	const char *device = getenv("NBOX_DEVICE"),
		   *file = run->config_file ? run->config_file : getenv("NBOX_CONFIG");
	int r = config_environment(c, environ, err);

	if (!run->device_text && device && device[0])
		run->device_text = device;
	if (r == 0)
		r = parse_device(run, err);
	if (r == 0 && file)
		r = config_file(c, file, err);
	if (r == 0 && run->name)
		r = take_name(run, err);
	if (r == 0)
		r = find_records(run, err);
	if (run->device == RUN_DEVICE_AUTO)
		run->device =
			access("/dev/nvidiactl", F_OK) == 0 ? RUN_DEVICE_CUDA : RUN_DEVICE_HOST;
	if (r == 0)
		r = check_kernels(run, err);
	if (r == 0)
		r = run_launcher_read(run, err);
	if (r == 0)
		r = config_finish(c, err);
	if (r == 0)
		r = run_launcher_finish(run, err);
	if (r == 0 && !run->printer)
		r = program_check(run->local_command ? run->local_command : run->command,
				  &run->line, run->is_dry ? &run->missing : err);
	if (run->missing.text[0])
		r = 0;
	if (r == 0)
		r = paths_find(&run->paths,
			       run->needs | (run->device == RUN_DEVICE_HOST ? PATHS_HOST : 0), err);
	if (r == 0 && !run->is_plain)
		r = check_model(run, err);
	if (r == 0)
		r = check_driver(run, err);
	if (r == 0)
		r = full_mode_check(run, err);
	if (r == 0 && !run->is_plain)
		r = results_check(c->out, err);
	if (r == 0 && run->json && !run->is_plain)
		r = results_check_file("--json", run->json, c->out, err);
	if (r < 0)
		return r;
	look_for_ranks(run);
	if (run->n_procs > c->n_real && !run->is_plain)
		return err_set(err, EINVAL, "--procs %llu: only %zu ranks are real; see --real",
			       (unsigned long long)run->n_procs, c->n_real);
	return 0;
}
