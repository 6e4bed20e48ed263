/* A run as it was asked for, by `nbox run` or `nbox perf`. flags.c fills it in, prepare.c checks
 * it, execute.c carries it out. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "engine/record-read.h"
#include "nbox/doctor/paths.h"
#include "nbox/report/report.h"
#include "nbox/run/launcher-line.h"

enum run_device { RUN_DEVICE_AUTO, RUN_DEVICE_HOST, RUN_DEVICE_CUDA };

/* A command that prints something else than the summary, such as a table. */
struct run_printer {
	const char *command;                                       /* of nbox, such as "perf" */
	void (*head)(const struct config *c, const char *network); /* before the job */
	/* After it. Return: 0; negative errno with the sentence. */
	int (*print)(void *ctx, const struct record *rec, const struct report *rep, const char *dir,
		     int exit_code, struct err *err);
	void *ctx;
};

struct run {
	struct config *config; /* owned; finished before run_execute() */
	const char *config_file;
	const char *name; /* of the run: nbox-out/NAME; or NULL */
	const char *json; /* also write the summary there */
	const char *device_text;
	const char *gpu; /* how long kernels take (kernels/table.h), or NULL */
	enum run_device device;
	const char *procs_text; /* as typed; only says that --procs was given */
	uint64_t n_procs;       /* 0: as many as there are real ranks */
	bool is_plain;          /* without nbox: a baseline on the stand-ins */
	bool is_dry, is_quiet;
	const struct run_printer *printer; /* borrowed; NULL: the summary is printed */
	bool is_launcher;          /* COMMAND starts the ranks; known by its name, or --launcher */
	uint32_t n_launcher_ranks; /* ranks that it starts here */
	struct launcher_line line;
	char *changed;        /* owned; what nbox changed in the launcher's command; or NULL */
	char **command;       /* borrowed, NULL-terminated */
	char **local_command; /* owned; NULL, or runs instead of @command */
	int argc;             /* nbox's own words, for command.txt */
	char **argv;
	char kernels[PATH_MAX]; /* NBOX_HOST_KERNEL_TIME of the job; "": as it is */
	char compute[256];      /* how long kernels take, in words; "": no time */
	char network[512]; /* that times come from, in words; "": --plain, or the model is none */
	char hint[512];    /* that the command seems to start its ranks itself; "": it does not, or
			      that was said */
	char warning[512]; /* of the model, to be read before the run; "": none */
	char nccl[768];    /* --nccl full: which NCCL, as far as it is known; "": another run */
	char nccl_warning[1024]; /* ... what to read before the run; "": nothing */
	struct err
		missing; /* a dry run: why the command could not run here, said behind the plan */
	unsigned int needs; /* PATHS_... */
	struct paths paths;
};

void run_deinit(struct run *run);
/* The command that the user has typed: "run", or the printer's. */
const char *run_command(const struct run *run);
/* Local processes that nbox starts. */
uint32_t run_count_procs(const struct run *run);
/* Nobody said how large the cluster is. */
bool run_is_assumed_size(const struct run *run);
