/* See live.h. */
#include "nbox/sweep/live.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/report/expect.h"

#define COMMAND_MAX (1 << 20)

/* Of nbox run's own words those that say how the job is started. */
static bool is_kept(enum option_id id)
{
	return id == FLAG_PROCS || id == FLAG_LAUNCHER || id == FLAG_DEVICE || id == FLAG_GPU;
}

static int add_run_words(struct values *own, struct values *ret, struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; r == 0 && i < (int)own->n;) {
		r = option_take(COMMAND_RUN, (int)own->n, own->list, &i, &w, err);
		if (r == 0 && is_kept(w.id)) {
			r = values_add(ret, w.name);
			if (r == 0 && w.value)
				r = values_add(ret, w.value);
		}
	}
	return r == OPTION_NONE ? -EINVAL : r;
}

int live_command(const char *run_dir, const struct grid *g, size_t point, const char *dir,
		 struct values *ret, struct err *err)
{
	CLEANUP(values_deinit) struct values own = {.list = NULL};
	CLEANUP(freep) char *text = NULL;
	char path[PATH_MAX + 32];
	char *at, *line;
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%s/command.txt", run_dir);
	r = file_read(path, COMMAND_MAX, &text, &n, err);
	if (r < 0)
		return r;
	at = text;
	while (r == 0 && (line = strsep(&at, "\n")) && at && strcmp(line, "--") != 0)
		r = values_add(&own, line);
	if (r == 0 && (!at || !*at || own.n == 0 || strcmp(own.list[0], "run") != 0))
		return err_set(err, EINVAL,
			       "%s: not by nbox run: nobody knows how the job is started again",
			       path);
	snprintf(path, sizeof(path), "%s/config.yaml", run_dir);
	r = r == 0 ? values_add(ret, "run") : r;
	r = r == 0 ? values_add(ret, "--config") : r;
	r = r == 0 ? values_add(ret, path) : r;
	r = r == 0 ? add_run_words(&own, ret, err) : r;
	r = r == 0 ? grid_words(g, point, ret, err) : r;
	r = r == 0 ? values_add(ret, "--out") : r;
	r = r == 0 ? values_add(ret, dir) : r;
	r = r == 0 ? values_add(ret, "--") : r;
	while (r == 0 && (line = strsep(&at, "\n")) && at)
		r = values_add(ret, line);
	return r;
}

/* nbox run, which ends its job when the sweep ends. */
static _Noreturn void become(const struct values *command, const char *output)
{
	char **argv = calloc(command->n + 2, sizeof(*argv));
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || !argv || fd < 0 ||
	    dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	for (int id = 0; id < CONFIG_OPTIONS; id++) /* they would count more than the run's file */
		unsetenv(options[id].variable);
	argv[0] = (char *)"nbox";
	memcpy(argv + 1, command->list, command->n * sizeof(*argv));
	execv("/proc/self/exe", argv);
	_exit(127);
}

int live_run(const struct values *command, const char *dir, struct err *err)
{
	char path[PATH_MAX + 32];
	int status;
	pid_t pid;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/" LIVE_OUTPUT_NAME, dir);
	pid = fork();
	if (pid == 0)
		become(command, path);
	if (pid < 0)
		return err_set(err, errno, "no process: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_EXIT_CODE_UNMET))
		return 0;
	return WIFSIGNALED(status) ? err_set(err, EIO, "signal %d ended the run; see %s",
					     WTERMSIG(status), path)
				   : err_set(err, EIO, "the run ended with %d; see %s",
					     WEXITSTATUS(status), path);
}
