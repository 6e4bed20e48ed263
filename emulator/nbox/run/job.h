/* The job: local processes that nbox starts together and waits for together. A signal that asks
 * nbox to end is passed on. When one process fails the others get a while to notice, then SIGTERM,
 * then SIGKILL. Nothing is left behind: each process has its own group and dies with nbox, and its
 * children in other sessions are killed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define JOB_PROCS_MAX 1024
#define JOB_NO_PROC UINT32_MAX

#define JOB_SIGNALS 2

struct job {
	pid_t pids[JOB_PROCS_MAX]; /* 0: ended */
	uint32_t n;
	int exit_code;        /* of the process that failed first; 128 + signal */
	uint32_t failed_proc; /* its number, when exit_code is not 0; JOB_NO_PROC: nboxd's end was
				 the reason */
	int is_interrupted;   /* by a signal to nbox */
	bool is_alone;   /* set before the start: there will be one process; it gets the terminal */
	bool was_well;   /* at the time of the signal none of several processes had failed */
	bool has_killed; /* nbox has sent SIGKILL: a process that dies of one may have died of ours
			  */
	/* May be NULL: called once, when the job has run for @look_ms. */
	void (*on_look)(void *ctx);
	unsigned int look_ms;
	/* May be NULL: process @proc has ended, with the exit code of a shell. */
	void (*on_end)(void *ctx, uint32_t proc, int exit_code);
	void *ctx;
	void (*inherited[JOB_SIGNALS])(
		int); /* what nbox was started with for the signals that it ignores itself */
};

/* The environment of one more process: a copy of ours, which @set changes (env.h). It is called in
 * the child, before that becomes the program. Return: 0; negative errno. */
struct job_env {
	int (*set)(void *ctx);
	void *ctx;
};

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for job_wait(); call before start. */
int job_init(struct job *j, struct err *err);
int job_start(struct job *j, char *const argv[], const struct job_env *env, struct err *err);
/* nboxd: when it ends, the job is ended. */
struct job_also {
	pid_t pid; /* 0: none, or it has ended and was waited for */
	bool has_ended;
	int exit_code; /* when it has: 128 + signal, or its code */
	/* It has just ended. @is_running: some of the job's processes still run, and will be ended.
	 */
	void (*on_end)(void *ctx, int exit_code, bool is_running);
	void *ctx;
};
/* Until all have ended. @also may be NULL. Bounded after a failure by @grace_ms + 5 s,
 * after a signal to nbox or the end of @also by 5 s, after a second signal by nothing. Return: 0
 * or negative errno. */
int job_wait(struct job *j, struct job_also *also, unsigned int grace_ms, struct err *err);
void job_kill(struct job *j, int sig); /* a stopped process is woken */
