/* See pool.h. */
#include "nbox/sweep/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BAR_WIDTH 40
#define PLAIN_LINE_NS (5 * NS_PER_S) /* of progress, where there is no terminal */

struct progress {
	const char *command;
	size_t n, n_done, n_failed;
	uint64_t start_ns, line_ns;
	bool is_terminal;
};

static void show(struct progress *p)
{
	uint64_t now_ns = clock_now_ns();
	double passed = (double)(now_ns - p->start_ns) / 1e9;
	double left = passed / (double)p->n_done * (double)(p->n - p->n_done);
	int filled = (int)(BAR_WIDTH * p->n_done / p->n);
	char failed[32] = "", bar[BAR_WIDTH + 1];

	if (p->n_failed)
		snprintf(failed, sizeof(failed), ", %zu failed", p->n_failed);
	if (p->is_terminal) {
		memset(bar, '#', sizeof(bar) - 1);
		bar[filled] = '\0';
		fprintf(stderr, "\r[%-*s] %zu of %zu points%s, %.0f s left \033[K%s", BAR_WIDTH,
			bar, p->n_done, p->n, failed, left, p->n_done == p->n ? "\n" : "");
	} else if (now_ns - p->line_ns >= PLAIN_LINE_NS) {
		p->line_ns = now_ns;
		fprintf(stderr, "nbox %s: %zu of %zu points%s, %.0f s, %.0f s left\n", p->command,
			p->n_done, p->n, failed, passed, left);
	}
}

/* A child's. It does not outlive its parent. */
static _Noreturn void play(const struct sweep *s, size_t point, pid_t parent)
{
	struct err err = {""};

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
		_exit(1);
	_exit(point_play(s, point, &err) < 0);
}

/* Waits for one of them. */
static int take_one(const struct sweep *s, pid_t *pids, struct progress *p, struct err *err)
{
	char why[64];
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) < 0)
		if (errno != EINTR)
			return err_set(err, errno, "a point's process is gone: %s",
				       strerror(errno));
	for (size_t i = 0; i < s->grid.n_points; i++) {
		if (pids[i] != pid)
			continue;
		pids[i] = 0;
		p->n_done++;
		p->n_failed += status != 0;
		if (WIFSIGNALED(status)) {
			snprintf(why, sizeof(why), "signal %d ended its process", WTERMSIG(status));
			point_fail(s, i, why);
		}
		show(p);
		return 0;
	}
	return 0;
}

/* @ret_todo: whether each point is to be played. Return: how many; -ENOMEM. */
static ssize_t find_todo(const struct sweep *s, bool *ret_todo)
{
	struct point_result result;
	ssize_t n = 0;

	for (size_t i = 0; i < s->grid.n_points; i++) {
		if (point_read(s, i, &result) < 0)
			return -ENOMEM;
		ret_todo[i] = result.state != POINT_DONE;
		n += ret_todo[i];
	}
	return n;
}

int pool_play(const struct sweep *s, unsigned n_jobs, struct err *err)
{
	struct progress p = {.command = s->command,
			     .start_ns = clock_now_ns(),
			     .is_terminal = isatty(STDERR_FILENO)};
	CLEANUP(freep) pid_t *pids = calloc(s->grid.n_points, sizeof(*pids));
	CLEANUP(freep) bool *todo = calloc(s->grid.n_points, sizeof(*todo));
	ssize_t n = pids && todo ? find_todo(s, todo) : -ENOMEM;
	unsigned n_running = 0;
	int r = n < 0 ? err_set(err, ENOMEM, "out of memory") : 0;

	p.line_ns = p.start_ns;
	p.n = n < 0 ? 0 : (size_t)n;
	if (p.n < s->grid.n_points)
		fprintf(stderr, "nbox %s: %zu of %zu points are complete already\n", s->command,
			s->grid.n_points - p.n, s->grid.n_points);
	fflush(NULL);
	for (size_t i = 0; r == 0 && i < s->grid.n_points; i++) {
		pid_t self = getpid();

		if (!todo[i])
			continue;
		if (n_running == n_jobs) {
			r = take_one(s, pids, &p, err);
			n_running--;
		}
		pids[i] = fork();
		if (pids[i] == 0)
			play(s, i, self);
		if (pids[i] < 0)
			r = err_set(err, errno, "no process for a point: %s", strerror(errno));
		else
			n_running++;
	}
	for (; r == 0 && n_running; n_running--)
		r = take_one(s, pids, &p, err);
	return r;
}
