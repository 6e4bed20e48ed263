/* See summary.h. The summary is nbox's; nboxd knows no more of it than its command. */
#include "nboxd/job/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define REPORT_MS 60000 /* of a record of many millions of ops it takes seconds */
#define NAP_NS (5 * NS_PER_MS)

extern char **environ;

/* Return: 0; SUMMARY_UNMET; -ECHILD it failed, and said why; -ETIMEDOUT. */
static int await(pid_t pid)
{
	uint64_t until = clock_now_ns() + REPORT_MS * NS_PER_MS;
	struct timespec nap = {.tv_nsec = NAP_NS};
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (clock_now_ns() >= until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -ETIMEDOUT;
		}
		nanosleep(&nap, NULL);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_EXIT_CODE_UNMET)
		return SUMMARY_UNMET;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* `nbox report` takes from a summary.json what the record does not have. What cannot be written is
 * left out. */
static void write_network(const char *path, const char *network)
{
	json_t *j = network[0] ? json_pack("{s:s}", "network", network) : NULL;

	if (j)
		json_dump_file(j, path, 0);
	json_decref(j);
}

static bool is_quiet(void)
{
	const char *quiet = getenv("NBOX_QUIET");

	return quiet && strcmp(quiet, "1") == 0;
}

/* The expectations as options, but for those of an exit code, which is not known here. */
static void add_expects(const struct config *c, char **argv)
{
	for (size_t i = 0; i < c->n_expects; i++) {
		if (c->expects[i].metric == EXPECT_EXIT_CODE)
			continue;
		*argv++ = (char *)"--expect";
		*argv++ = c->values[CONFIG_EXPECT].items[i].text;
	}
	*argv = NULL;
}

int summary_write(const struct config *c, const char *network, bool is_printed, struct err *err)
{
	char folder[PATH_MAX], nbox[PATH_MAX + 8], json[PATH_MAX + 16];
	char *argv[5 + 2 * CONFIG_EXPECTS_MAX + 1] = {nbox, (char *)"report", (char *)"--json",
						      json, (char *)(uintptr_t)c->out};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r = file_own_folder(folder, sizeof(folder));

	if (r < 0)
		return err_set(err, -r, "summary.json: cannot find nboxd's own folder: %s",
			       strerror(-r));
	snprintf(nbox, sizeof(nbox), "%s/nbox", folder);
	snprintf(json, sizeof(json), "%.*s/summary.json", PATH_MAX - 1, c->out);
	if (posix_spawn_file_actions_init(&actions))
		return err_set(err, ENOMEM, "summary.json: out of memory");
	write_network(json, network);
	add_expects(c, argv + 5);
	r = is_printed && !is_quiet()
		    ? posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
		    : posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
						       O_WRONLY, 0);
	if (r == 0)
		r = posix_spawn(&pid, nbox, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return err_set(err, r, "summary.json: cannot start %s: %s", nbox, strerror(r));
	r = await(pid);
	return r < 0 ? err_set(err, -r, "summary.json: %s report %s %s", nbox, c->out,
			       r == -ETIMEDOUT ? "did not end within 60 s" : "failed")
		     : r;
}
