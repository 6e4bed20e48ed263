/* Inside links/: the unix sockets on which the two sides of a shm link meet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The file of a listening socket, so that we never remove somebody else's. */
struct unix_name {
	dev_t dev;
	ino_t ino;
};

/* Non-blocking sockets. Return: 0; negative errno with the sentence. */
int unix_connect(const char *path, uint64_t due_ns, int *ret_fd, struct err *err);
/* Refuses a path where somebody listens (-EADDRINUSE) and one that is no socket
 * (-EEXIST); replaces a dead socket. Only the user may connect (mode 0600). */
int unix_listen(const char *path, int *ret_fd, struct unix_name *ret_name, struct err *err);
void unix_unlisten(const char *path, const struct unix_name *name);
