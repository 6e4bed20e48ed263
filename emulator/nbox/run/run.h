/* A run: what `nbox run` and `nbox perf` do once they know what is asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "nbox/paths.h"
#include "nbox/run/launcher-line.h"

enum run_device { RUN_DEVICE_AUTO, RUN_DEVICE_HOST, RUN_DEVICE_CUDA };

struct run {
	struct config *config; /* owned; finished before run_execute() */
	const char *config_file;
	const char *name; /* of the run: nbox-out/NAME; or NULL */
	const char *json; /* also write the summary there */
	const char *device_text;
	enum run_device device;
	unsigned int flags_seen; /* bits by run_arg()'s table */
	uint64_t n_procs;        /* 0: as many as there are real ranks */
	bool is_plain;           /* without nbox: a baseline on the stand-ins */
	bool is_dry, is_quiet;
	const char *perf_op; /* of nbox perf, which prints its own summary; or NULL */
	bool is_launcher;    /* COMMAND starts the ranks; known by its name, or --launcher */
	uint32_t n_launched; /* ranks that it starts here */
	struct launch_line line;
	char *changed;        /* owned; what nbox changed in the launcher's command; or NULL */
	char **command;       /* borrowed, NULL-terminated */
	char **local_command; /* owned; NULL, or runs instead of @command */
	int n_command;
	int argc; /* nbox's own words, for command.txt */
	char **argv;
	char network[320];  /* that times come from, in words; "": --plain, or the model is none */
	char hint[512];     /* that the command seems to start its ranks itself; "": it does not, or
			       that was said */
	char warning[512];  /* of the model, to be read before the run; "": none */
	unsigned int needs; /* PATHS_... */
	struct paths paths;
};

void run_deinit(struct run *r);

/* Flags of `nbox run` that are no options of nboxd: takes argv[*index] if it is one.
 * Return: 0; CONFIG_NOT_MINE; -EINVAL with the sentence. */
int run_arg(struct run *r, int argc, char **argv, int *index, struct err *err);
/* @defaults: shown as defaults; NULL: those of the table. */
void run_help(FILE *f, const struct config *defaults);
/* The names of these flags, with dashes, for suggestions. */
extern const char *const run_flags[];
extern const size_t n_run_flags;

/* Reads file and environment, checks everything, finds nbox's parts and loads the
 * model once to see that it is right. Return: 0 or negative errno with the sentence. */
int run_prepare(struct run *r, struct err *err);

/* Return: the exit code for nbox: the job's own, or 1 with the sentence printed. */
int run_execute(struct run *r);
