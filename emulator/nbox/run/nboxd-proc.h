/* nboxd as a child process: started, waited for until it listens, ended. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "nbox/run/job.h"

struct nboxd_proc {
	pid_t pid;       /* 0: not running */
	int ended_fd;    /* owned while it runs; see nboxd_tell_ended() */
	char addr[256];  /* where it listens, from its ready line */
	char store[256]; /* HOST:PORT of its TCPStore server; "": none */
};

/* Waits at most 10 s for "nboxd ready ADDR [store HOST:PORT]". @argv[0] is the program; --ready-fd
 * N and
 * --ended-fd N are added. When it ends instead, its own error line is on stderr. */
int nboxd_start(struct nboxd_proc *p, char *const argv[], const struct job_env *env,
		struct err *err);
/* Tells nboxd that the process of the real @rank has ended and will not be started again, so that
 * no member waits for it. */
void nboxd_tell_ended(const struct nboxd_proc *p, uint32_t rank, int exit_code);
/* Is nboxd ending, or has it ended, though nbox did not ask it to? nboxd closes its end of the
 * socket before it closes the first link: this is true after a job that failed because nboxd left.
 */
bool nboxd_is_leaving(const struct nboxd_proc *p);
/* SIGTERM, at most 10 s, SIGKILL. Return: its exit code. */
int nboxd_stop(struct nboxd_proc *p);
/* nboxd has ended and was waited for: closes and removes what is left of it. */
void nboxd_gone(struct nboxd_proc *p);
