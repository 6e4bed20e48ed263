/* See full-mode.h. The job may bring an NCCL of its own, as PyTorch's wheels do. So what is wrong
 * with the one of the search path is a warning; each process looks again at the one that it has. */
#include "nbox/run/full-mode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/doctor/driver.h"

static void warn(struct run *run, const char *text)
{
	size_t used = strlen(run->nccl_warning);

	snprintf(run->nccl_warning + used, sizeof(run->nccl_warning) - used, "%s%s",
		 used ? "; " : "", text);
}

/* The variables of the user's that matter most of those that libnbox.so sets otherwise. It notes
 * all for the summary. */
static void warn_of_variables(struct run *run)
{
	static const char *const names[] = {"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_PROFILER_PLUGIN"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);
		char text[256];

		if (!value || !value[0])
			continue;
		snprintf(text, sizeof(text),
			 "%s=%.64s of the environment does not count: with nccl full libnbox.so is "
			 "NCCL's network and profiler",
			 names[i], value);
		warn(run, text);
	}
}

/* A tuner of the user's stays, and then a decision file says only what the model expects. */
static void warn_of_tuner(struct run *run)
{
	const char *tuner = getenv("NCCL_TUNER_PLUGIN");
	char text[256];

	if (!tuner || !tuner[0] || !strstr(run->config->model, "decisions="))
		return;
	snprintf(text, sizeof(text),
		 "NCCL_TUNER_PLUGIN=%.64s of the environment is NCCL's tuner: the model's decision "
		 "file does not count for what NCCL takes",
		 tuner);
	warn(run, text);
}

/* NBOX_NCCL is a path, and the option's variable has another name. */
static int check_path(const char *path, bool is_full, struct err *err)
{
	if (strcmp(path, "full") == 0 || strcmp(path, "gate") == 0)
		return err_set(err, EINVAL,
			       "NBOX_NCCL=%s: that variable is the path of the real NCCL; the "
			       "option --nccl is NBOX_NCCL_MODE=%s",
			       path, path);
	if (is_full && strchr(path, '/') && access(path, R_OK) < 0)
		return err_set(err, EINVAL,
			       "NBOX_NCCL=%.400s: %s; give the path of the real libnccl.so.2", path,
			       strerror(errno));
	return 0;
}

int full_mode_check(struct run *run, struct err *err)
{
	const char *chosen = getenv("NBOX_NCCL");
	bool is_chosen = chosen && chosen[0], is_full = run->config->nccl == NCCL_FULL;
	struct driver_nccl n;
	struct err why = {""};

	if (is_chosen && !run->is_plain && check_path(chosen, is_full, err) < 0)
		return -EINVAL;
	if (!is_full || run->is_plain)
		return 0;
	if (run->device == RUN_DEVICE_HOST && !is_chosen)
		return err_set(
			err, EINVAL,
			"--nccl full: without a GPU the job runs on a stand-in for NCCL, which has no "
			"messages of NCCL's: take nccl gate, or an NCCL that runs here (NBOX_NCCL=PATH)");
	warn_of_variables(run);
	warn_of_tuner(run);
	driver_ask_nccl(&n);
	if (!n.version) {
		snprintf(run->nccl, sizeof(run->nccl),
			 "its version is not known here (%.200s): the job's processes look", n.why);
		return 0;
	}
	snprintf(run->nccl, sizeof(run->nccl), "NCCL %d.%d.%d%s, %.400s", n.version / 10000,
		 n.version / 100 % 100, n.version % 100,
		 is_chosen ? "" : " (unless the job brings another)", n.path);
	plain_text(run->nccl);
	if (driver_nccl_goes_full(&n, &why) < 0 && is_chosen)
		return err_set(err, EINVAL, "NBOX_NCCL: %s", why.text);
	if (why.text[0])
		warn(run, why.text);
	plain_text(run->nccl_warning);
	return 0;
}
