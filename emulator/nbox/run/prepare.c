/* See prepare.h. */
#include "nbox/run/prepare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plain.h"
#include "config/open-model.h"
#include "engine/delay-network.h"
#include "links/rdma/options.h"
#include "nbox/doctor/driver.h"
#include "nbox/report/live-run.h"
#include "nbox/report/runs.h"
#include "nbox/run/launcher.h"
#include "nbox/run/program.h"
#include "nbox/run/results.h"
#include "nbox/run/script.h"

extern char **environ;

static int parse_device(struct run *r, struct err *err)
{
	const char *d = r->device_text;

	if (!d || strcmp(d, "auto") == 0)
		r->device = RUN_DEVICE_AUTO;
	else if (strcmp(d, "host") == 0)
		r->device = RUN_DEVICE_HOST;
	else if (strcmp(d, "cuda") == 0)
		r->device = RUN_DEVICE_CUDA;
	else
		return err_set(err, EINVAL, "--device: '%s' is none of auto, host, cuda", d);
	return 0;
}

/* The model and the what-ifs as nboxd will load them: an error now is better than
 * one from a process behind us. */
static int check_model(struct run *r, struct err *err)
{
	const struct delay_network cluster = {
		.intra_latency = config_text(r->config, CONFIG_INTRA_LATENCY),
		.intra_bandwidth = config_text(r->config, CONFIG_INTRA_BANDWIDTH),
		.inter_latency = config_text(r->config, CONFIG_INTER_LATENCY),
		.inter_bandwidth = config_text(r->config, CONFIG_INTER_BANDWIDTH),
	};
	const char *dirs[] = {r->paths.models, NULL};
	struct delay_chain *chain = NULL;
	int code = open_model(r->config, dirs, &chain, err);

	if (code == 0 && strcmp(r->config->model, "none") != 0)
		delay_network(chain, &cluster, r->network, sizeof(r->network));
	if (code == 0 && delay_warning(chain))
		snprintf(r->warning, sizeof(r->warning), "%s", delay_warning(chain));
	delay_free(chain);
	return code;
}

/* The user named no launcher, so nbox run will start the command once for each rank: does the
 * command start ranks, too? */
static void look_for_ranks(struct run *r)
{
	size_t n = r->config->n_real;
	char what[256];
	const char *option;

	if (r->printer || r->is_launcher || r->n_procs || n < 2 ||
	    !script_starts_ranks(r->command, what, sizeof(what), &option))
		return;
	snprintf(
		r->hint, sizeof(r->hint),
		"the command seems to start its ranks itself (%s), and is started %zu times, once for each real rank: "
		"say %s, or --procs %zu if that is meant",
		what, n, option, n);
	plain_text(r->hint);
}

/* --device cuda: said now, not by each worker. With auto the choice was made by what is here. */
static int check_driver(const struct run *r, struct err *err)
{
	struct err why = {""};
	int code = r->device_text && strcmp(r->device_text, "cuda") == 0 && !r->is_plain
			   ? driver_check(&why)
			   : 0;

	return code < 0 ? err_set(err, -code, "--device cuda: %s; without a GPU: --device host",
				  why.text)
			: 0;
}

/* --name: a folder of its own below nbox-out. It goes before NBOX_OUT and a file's out:, as each
 * flag. */
static int take_name(struct run *r, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;
	bool is_there;
	int code = runs_check_name(r->name, err);

	if (code < 0)
		return code;
	if (r->is_plain)
		return err_set(err, EINVAL, "--name %s: a run with --plain leaves no results",
			       r->name);
	if (r->config->values[CONFIG_OUT].source == SOURCE_FLAG)
		return err_set(err, EINVAL,
			       "--name %s: the results go to %s already; give one of --name and "
			       "--out",
			       r->name, config_text(r->config, CONFIG_OUT));
	snprintf(path, sizeof(path), LIVE_RUN_TOP "/%s/record.nbox", r->name);
	is_there = lstat(path, &st) == 0; /* a start that failed leaves a folder without one */
	snprintf(path, sizeof(path), LIVE_RUN_TOP "/%s", r->name);
	if (is_there)
		return err_set(err, EEXIST,
			       "--name %s: %s is there; choose another name, or remove it", r->name,
			       path);
	return config_set(r->config, CONFIG_OUT, SOURCE_FLAG, path);
}

/* The options of rdma links, which nboxd and the workers will set. */
static int check_rdma(const struct config *c, struct err *err)
{
	struct rdma_options o;
	char where[256];
	int code = 0;

	rdma_options_init(&o);
	for (int id = CONFIG_IB_HCA; code == 0 && id <= CONFIG_IB_POLL; id++) {
		if (!config_text(c, id))
			continue;
		code = rdma_options_set(&o, options[id].variable + strlen("NBOX_IB_"),
					config_text(c, id), err);
		if (code < 0)
			err_prefix(err, code, "%s", config_where(c, id, 0, where, sizeof(where)));
	}
	return code;
}

int run_prepare(struct run *r, struct err *err)
{
	struct config *c = r->config;
	const char *device = getenv("NBOX_DEVICE"),
		   *file = r->config_file ? r->config_file : getenv("NBOX_CONFIG");
	int code = config_environment(c, environ, err);

	if (!r->device_text && device && device[0])
		r->device_text = device;
	if (code == 0)
		code = parse_device(r, err);
	if (code == 0 && file)
		code = config_file(c, file, err);
	if (code == 0 && r->name)
		code = take_name(r, err);
	if (r->device == RUN_DEVICE_AUTO)
		r->device = access("/dev/nvidiactl", F_OK) == 0 ? RUN_DEVICE_CUDA : RUN_DEVICE_HOST;
	if (code == 0)
		code = run_launcher_read(r, err);
	if (code == 0)
		code = config_finish(c, err);
	if (code == 0)
		code = run_launcher_finish(r, err);
	if (code == 0 && !r->printer)
		code = program_check(r->local_command ? r->local_command : r->command, &r->line,
				     err);
	if (code == 0)
		code = paths_find(&r->paths,
				  r->needs | (r->device == RUN_DEVICE_HOST ? PATHS_HOST : 0), err);
	if (code == 0 && !r->is_plain)
		code = check_model(r, err);
	if (code == 0 && !r->is_plain)
		code = check_rdma(c, err);
	if (code == 0)
		code = check_driver(r, err);
	if (code == 0 && !r->is_plain)
		code = results_check(c->out, err);
	if (code == 0 && r->json && !r->is_plain)
		code = results_check_file("--json", r->json, c->out, err);
	if (code < 0)
		return code;
	look_for_ranks(r);
	if (r->n_procs > c->n_real && !r->is_plain)
		return err_set(err, EINVAL, "--procs %llu: only %zu ranks are real; see --real",
			       (unsigned long long)r->n_procs, c->n_real);
	return 0;
}
