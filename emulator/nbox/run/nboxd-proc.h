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
/* The process that plays @rank has ended, and none comes instead: who waits for it is told so. */
void nboxd_tell_ended(const struct nboxd_proc *p, uint32_t rank, int exit_code);
/* It is ending, or has ended, and nobody here asked it to. It lets go of its end of that socket
 * before it closes the first link: true after a job that failed because nboxd left. */
bool nboxd_is_leaving(const struct nboxd_proc *p);
/* SIGTERM, at most 10 s, SIGKILL. Return: its exit code. */
int nboxd_stop(struct nboxd_proc *p);
/* It has ended and was waited for: nothing is left of it after this. */
void nboxd_gone(struct nboxd_proc *p);
