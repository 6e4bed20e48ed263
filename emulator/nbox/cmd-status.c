/* nbox status: connects to a running nboxd as a client and prints its answer: as a table for
 * people, as JSON for programs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/plain.h"
#include "config/addr-file.h"
#include "nbox/commands.h"
#include "nbox/report/live-run.h"
#include "nbox/report/runs.h"
#include "nbox/status/client.h"
#include "nbox/status/text.h"
#include "nbox/status/watch.h"

struct args {
	const char *addr, *token, *dir;
	bool is_json, is_watched;
};

static void usage(FILE *to)
{
	fputs("usage: nbox status [--watch] [--json] [DIR]\n"
	      "       nbox status [--watch] [--json] --addr shm:PATH|tcp:HOST:PORT|rdma:HOST:PORT [--token TOKEN]\n\n"
	      "Asks a running nboxd who waits for what. DIR is the results directory of its run, or its name; without one, NBOX_ADDR and\n"
	      "NBOX_TOKEN count, else the newest run under " LIVE_RUN_TOP
	      "/ that is under way. A table on a terminal; JSON\n"
	      "with --json, or where the output goes elsewhere.\n\n"
	      "--watch: again each second, until the run ends, or q or Ctrl-C: iteration times, ops a second, the longest waits. A line a\n"
	      "second where the output goes elsewhere.\n",
	      to);
}

/* Return: 0; 1 help was given; -EINVAL with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_STATUS, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && a->dir)
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'", a->dir,
				       argv[i]);
		if (r == OPTION_NONE) {
			a->dir = argv[i++];
			r = 0;
			continue;
		}
		if (w.id == FLAG_HELP) {
			usage(stdout);
			return 1;
		}
		if (w.id == FLAG_AS_JSON)
			a->is_json = true;
		else if (w.id == FLAG_WATCH)
			a->is_watched = true;
		else
			*(w.id == FLAG_ADDR ? &a->addr : &a->token) = w.value;
	}
	return a->dir && a->addr ? err_set(err, EINVAL, "either a directory or --addr") : 0;
}

/* @ret_dir: PATH_MAX bytes. */
static int ask_run(struct status_client *c, const char *dir, struct args *a, char *ret_dir)
{
	struct addr_file f;
	int r = addr_file_read(dir, &f, &c->err);

	if (r == -ENOENT)
		return err_set(
			&c->err, ENOENT,
			"no run is under way in %s: there is no %s (`nbox report %s` shows one that is over)",
			dir, ADDR_FILE_NAME, dir);
	if (r < 0)
		return r;
	r = status_open(c, f.addr, a->token ? a->token : f.token);
	if (r == -ECONNREFUSED || r == -ENOENT)
		err_set(&c->err, -r,
			"no run is under way in %s: its nboxd (pid %d, at %s) has ended without a good-bye",
			dir, f.pid, f.addr);
	snprintf(ret_dir, PATH_MAX, "%s", dir);
	return r;
}

/* The newest one that answers. Return: 0; -ENOENT with the sentence. */
static int ask_newest(struct status_client *c, struct args *a, char *ret_dir)
{
	struct live_runs runs;
	int r = live_runs_find(LIVE_RUN_TOP, ADDR_FILE_NAME, &runs);

	for (unsigned i = 0; r == 0 && i < runs.n; i++) {
		if (ask_run(c, runs.dirs[i], a, ret_dir) == 0)
			return 0;
		if (i + 1 < runs.n)
			status_close(c);
	}
	if (r == 0 && runs.n)
		return -EPROTO; /* with the sentence of the last */
	return err_set(&c->err, ENOENT,
		       "which nboxd? no run is under way under " LIVE_RUN_TOP
		       "/ here; name its results directory, "
		       "give --addr, or set NBOX_ADDR");
}

int cmd_status(int argc, char **argv)
{
	struct args a = {.addr = NULL};
	struct status_client c = {.state = 0};
	char found[PATH_MAX], dir[PATH_MAX] = "";
	int r = parse(argc, argv, &a, &c.err), code = 1;

	if (r < 0)
		fprintf(stderr, "nbox status: %s\n", c.err.text);
	if (r != 0)
		return r < 0 ? 2 : 0;
	if (a.dir) {
		r = ask_run(&c, runs_find(a.dir, found), &a, dir);
	} else if (a.addr || getenv("NBOX_ADDR")) {
		r = status_open(&c, a.addr ? a.addr : getenv("NBOX_ADDR"),
				a.token ? a.token : getenv("NBOX_TOKEN"));
		code = r == -EINVAL ? 2 : 1;
		if (r < 0 && strncmp(c.err.text, "wrong token", 11) == 0)
			fprintf(stderr,
				"nbox status: that token is not nboxd's; the results directory of its run knows it: "
				"nbox status DIR\n");
	} else {
		r = ask_newest(&c, &a, dir);
		code = r == -ENOENT ? 2 : 1;
	}
	if (r == 0 && a.is_watched) {
		r = watch_run(&c, dir, a.is_json ? WATCH_JSON : WATCH_TEXT);
		status_close(&c);
		return r;
	}
	if (r == 0)
		c.json[strcspn(c.json, "\n")] = 0; /* puts() has one of its own */
	if (r == 0 && (a.is_json || !isatty(STDOUT_FILENO)))
		puts(plain_text(c.json));
	else if (r == 0)
		r = status_print(c.json, stdout, &c.err);
	if (r < 0)
		fprintf(stderr, "nbox status: %s\n", c.err.text);
	status_close(&c);
	return r == 0 ? 0 : code;
}
