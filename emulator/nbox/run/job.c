/* See job.h. */
#include "nbox/run/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ORPHAN_ROUNDS 16

static void wanted_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* Signals that a write of nbox itself may raise, and that nbox ignores. The job gets back what nbox
 * was started with. */
static const int survived[JOB_SIGNALS] = {SIGPIPE, SIGXFSZ};

int job_init(struct job *j, struct err *err)
{
	sigset_t set;

	memset(j, 0, sizeof(*j));
	wanted_signals(&set);
	for (int i = 0; i < JOB_SIGNALS; i++)
		j->inherited[i] = signal(survived[i], SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(err, errno, "sigprocmask: %s", strerror(errno));
	return 0;
}

int job_start(struct job *j, char *const argv[], const struct job_env *env, struct err *err)
{
	int pipe_fd[2], r = 0;
	pid_t pid, parent = getpid();

	if (j->n == JOB_PROCS_MAX)
		return err_set(err, E2BIG, "more than %d local processes", JOB_PROCS_MAX);
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		r = errno;
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		return err_set(err, r, "fork: %s", strerror(r));
	}
	if (pid == 0) {
		sigset_t none;

		/* A group of its own, for its signals. Behind ours it would be stopped when it
		 * reads the terminal, as at a breakpoint; not so in a session of its own. Several
		 * stay in one, and may meet by it. */
		if (j->is_alone)
			setsid();
		else
			setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (int i = 0; i < JOB_SIGNALS; i++)
			signal(survived[i], j->inherited[i]);
		r = -env->set(env->ctx);
		if (r == 0) {
			execvp(argv[0], argv);
			r = errno;
		}
		if (write(pipe_fd[1], &r, sizeof(r)) < 0)
			_exit(126);
		_exit(127);
	}
	close(pipe_fd[1]);
	ssize_t n;

	/* when this comes back it has its group */
	do
		n = read(pipe_fd[0], &r, sizeof(r));
	while (n < 0 && errno == EINTR);
	close(pipe_fd[0]);
	if (n == (ssize_t)sizeof(r)) {
		waitpid(pid, NULL, 0);
		return err_set(err, r, "%s: %s", argv[0], strerror(r));
	}
	j->pids[j->n++] = pid;
	return 0;
}

void job_kill(struct job *j, int sig)
{
	j->has_killed = j->has_killed || sig == SIGKILL;
	for (uint32_t i = 0; i < j->n; i++)
		if (j->pids[i] > 0) {
			kill(-j->pids[i],
			     SIGCONT); /* one that is stopped would not hear the other */
			kill(-j->pids[i], sig);
		}
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Looks after nboxd. Where somebody has stopped nboxd, the user is told why the job stands still.
 * Return: whether nboxd has just ended. */
static bool reap_also(struct job_also *a)
{
	int status;

	if (!a || a->pid <= 0 ||
	    waitpid(a->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != a->pid)
		return false;
	if (WIFSTOPPED(status)) {
		fprintf(stderr,
			"nbox: nboxd is stopped (%s): the job stands still until kill -CONT %d\n",
			strsignal(WSTOPSIG(status)), (int)a->pid);
		return false;
	}
	if (WIFCONTINUED(status)) {
		fprintf(stderr, "nbox: nboxd goes on; ops of the meantime are late\n");
		return false;
	}
	a->exit_code = code_of(status);
	a->pid = 0;
	a->has_ended = true;
	return true;
}

/* A stopped process stays stopped for ever, as its group is no job of the shell. So it is killed.
 */
static void end_stopped(const struct job *j, uint32_t i, int sig)
{
	if (sig != SIGTTIN && sig != SIGTTOU)
		return;
	fprintf(stderr,
		"nbox: process %u of %u wants the terminal, which several cannot share, and is ended: give the job "
		"an input (</dev/null), or debug a rank alone (--gpus-per-node 1)\n",
		i, j->n);
	kill(-j->pids[i], SIGKILL);
}

/* Collects the processes that have ended, and decides which one failed first. A process that a
 * signal killed counts as the cause of one that ended by itself in the meantime. A SIGKILL counts
 * as the cause even when it is seen later: no process gets one because another failed, but the
 * others see a killed process's connections close before we can wait for it. Return: how many
 * processes still run. */
static uint32_t reap(struct job *j)
{
	uint32_t running = 0, who = 0;
	bool is_cause;
	int status, first = 0;

	for (uint32_t i = 0; i < j->n; i++) {
		if (j->pids[i] == 0)
			continue;
		if (waitpid(j->pids[i], &status, WNOHANG | WUNTRACED) != j->pids[i]) {
			running++;
			continue;
		}
		if (WIFSTOPPED(status)) {
			end_stopped(j, i, WSTOPSIG(status));
			running++;
			continue;
		}
		kill(-j->pids[i], SIGKILL); /* what it may have left behind */
		j->pids[i] = 0;
		if (j->on_end)
			j->on_end(j->ctx, i, code_of(status));
		if (code_of(status) != 0 && (first == 0 || (first < 128 && WIFSIGNALED(status)))) {
			first = code_of(status);
			who = i;
		}
	}
	is_cause = first == 128 + SIGKILL && j->exit_code < 128 && !j->has_killed;
	if (first != 0 && (j->exit_code == 0 || is_cause)) {
		j->exit_code = first;
		j->failed_proc = who;
	}
	return running;
}

/* A launcher's workers have sessions of their own (torchrun's do). When the launcher is killed they
 * become children of nbox, which is their subreaper, and are killed here. @spared: nboxd. */
static void kill_orphans(pid_t spared)
{
	pid_t self = getpid();

	for (int round = 0; round < ORPHAN_ROUNDS; round++) { /* their children come after them */
		DIR *d = opendir("/proc");
		uint32_t n = 0;

		for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
			char path[320], line[512] = "";
			pid_t pid = (pid_t)atoi(e->d_name), parent = 0;
			const char *after;
			FILE *f;

			if (pid <= 0 || pid == spared)
				continue;
			snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
			f = fopen(path, "re");
			if (f && fgets(line, sizeof(line), f) && (after = strrchr(line, ')')))
				sscanf(after + 1, " %*c %d", &parent);
			if (f)
				fclose(f);
			if (parent != self)
				continue;
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0); /* killed, it ends soon */
			n++;
		}
		if (d)
			closedir(d);
		if (!n)
			break;
	}
}

/* Passes the first signal on to the job. The second one kills the job at once. A process that heeds
 * neither the first signal nor the SIGTERM after it is killed. */
static void interrupt(struct job *j, int sig, uint64_t *term_at, uint64_t *kill_at)
{
	uint64_t now = clock_now_ns();

	if (j->is_interrupted) {
		*kill_at = now;
		return;
	}
	j->is_interrupted = sig;
	j->was_well = j->n > 1 && j->exit_code == 0;
	job_kill(j, sig);
	*term_at = now + 2 * NS_PER_S;
	*kill_at = now + 5 * NS_PER_S;
}

/* nboxd has ended, so the job has failed: the processes that fail from now on fail because of that.
 * A process that failed before stays the reason. */
static void give_up(struct job *j, const struct job_also *a, bool is_running)
{
	if (a->on_end)
		a->on_end(a->ctx, a->exit_code, is_running);
	if (j->exit_code)
		return;
	j->exit_code = 1;
	j->failed_proc = JOB_NO_PROC;
}

int job_wait(struct job *j, struct job_also *also, unsigned int grace_ms, struct err *err)
{
	uint64_t term_at = UINT64_MAX, kill_at = UINT64_MAX, look_at;
	sigset_t set;

	wanted_signals(&set);
	look_at = j->on_look ? clock_now_ns() + j->look_ms * NS_PER_MS : UINT64_MAX;
	for (;;) {
		/* nboxd first: processes that end because of it end later */
		bool is_lost = reap_also(also);
		bool is_running = reap(j) != 0;
		uint64_t now = clock_now_ns();

		if (is_lost) {
			give_up(j, also, is_running);
			term_at = now;
		}
		if (!is_running)
			break;
		struct timespec wait = {.tv_nsec = 100 * 1000 * 1000};
		int sig;

		if (j->exit_code != 0 && term_at == UINT64_MAX && kill_at == UINT64_MAX)
			term_at = now + grace_ms * NS_PER_MS;
		if (now >= term_at) {
			job_kill(j, SIGTERM);
			term_at = UINT64_MAX;
			if (kill_at == UINT64_MAX)
				kill_at = now + 5 * NS_PER_S;
		}
		if (now >= kill_at)
			job_kill(j, SIGKILL);
		if (now >= look_at) {
			j->on_look(j->ctx);
			look_at = UINT64_MAX;
		}
		sig = sigtimedwait(&set, NULL, &wait);
		if (sig < 0 && errno != EAGAIN && errno != EINTR)
			return err_set(err, errno, "sigtimedwait: %s", strerror(errno));
		if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP)
			interrupt(j, sig, &term_at, &kill_at);
	}
	kill_orphans(also ? also->pid : 0);
	/* also where the last word was our own SIGTERM or SIGKILL, and where one of several failed
	 * because another one was interrupted before it */
	if (j->is_interrupted && (j->exit_code == 0 || j->exit_code > 128 || j->was_well))
		j->exit_code = 128 + j->is_interrupted;
	return 0;
}
