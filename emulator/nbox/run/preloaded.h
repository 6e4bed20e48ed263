/* Whether libnbox.so is in a process of the job. Many things keep LD_PRELOAD from a process: sudo,
 * a container, a launcher that cleans the environment, a static program. The job then runs without
 * nbox, or waits for ranks that nobody plays. */
#pragma once

#include <sys/types.h>

struct preloaded {
	unsigned int n_processes; /* of the job */
	unsigned int n_with;      /* of them with libnbox.so */
	pid_t pid;                /* one of them; 0: none */
	char command[64];         /* its name */
};

/* All that descend from this process, but for @spared (nboxd). */
void preloaded_look(pid_t spared, struct preloaded *ret);
