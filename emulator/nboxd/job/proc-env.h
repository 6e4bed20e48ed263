/* Processes of this machine: what they were started with, and which process is their parent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_env {
	const char *text; /* until the next proc_env_read(); terminated */
	size_t n;
};

/* One thread. Return: 0; -EACCES another user's; -ENOENT, -ESRCH gone; -E2BIG more than 256 KiB. */
int proc_env_read(pid_t pid, struct proc_env *ret);
/* Return: NULL: there is no such variable. */
const char *proc_env_get(const struct proc_env *e, const char *name);
/* Is there a variable whose name begins so? */
bool proc_env_has(const struct proc_env *e, const char *prefix);
/* Return: 0: not to be seen; *ret_state as in proc(5): 'Z' has ended. */
pid_t proc_parent(pid_t pid, char *ret_state);
/* When it was started, in clock ticks since the boot: with the pid that is one process and no
 * other. 0: not to be seen. */
uint64_t proc_start(pid_t pid);
/* The pid namespace (container) in which the pids of this process count; 0: not to be seen. */
uint64_t proc_namespace(void);
#define PROC_PARENTS_MAX 16 /* are looked at */
/* The agent of the worker @pid: the first of its parents that is no worker. 0: not to be seen.
 * Overwrites what proc_env_read() gave. */
pid_t proc_agent(pid_t pid);
