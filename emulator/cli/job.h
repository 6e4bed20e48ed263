/* The job: local processes started together, waited for together. A signal that
 * asks nbox to end is passed on; when one process fails the others get a while to
 * notice, then SIGTERM, then SIGKILL. Nothing is left behind: each process has
 * its own group and dies with nbox. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define JOB_PROCS_MAX 1024

struct job {
	pid_t pids[JOB_PROCS_MAX]; /* 0: ended */
	uint32_t n;
	int exit_code;             /* of the first process that failed; 128 + signal */
	uint32_t failed_proc;      /* its number, when exit_code is not 0 */
	int is_interrupted;        /* by a signal to nbox */
};

/* An environment for one more process: "NAME=value" strings, owned. */
struct job_env {
	char **vars; /* NULL-terminated */
	uint32_t n, capacity;
};
int job_env_init(struct job_env *e);  /* a copy of ours */
void job_env_deinit(struct job_env *e);
int job_env_set(struct job_env *e, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts @value in front of a colon-separated list. */
int job_env_prepend(struct job_env *e, const char *name, const char *value);

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for job_wait(); call before start. */
int job_init(struct job *j, struct err *err);
int job_start(struct job *j, char *const argv[], const struct job_env *env, struct err *err);
/* Until all have ended. @also: a process (nboxd) whose end is noted in
 * *ret_also_status but ends nothing by itself; 0: none. Bounded after a failure by
 * @grace_ms + 5 s. Return: 0 or negative errno. */
int job_wait(struct job *j, pid_t also, int *ret_also_status, unsigned int grace_ms,
	     struct err *err);
void job_kill(struct job *j, int sig);
