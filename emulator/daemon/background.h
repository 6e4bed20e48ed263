/* nboxd --background: the command returns when nboxd listens, and nboxd goes on by itself. */
#pragma once

#include "base/err.h"

/* Forks. In the child: 0, a session of its own, *ret_ready_fd is where the ready line goes (the
 * caller closes it). In the parent: 1, *ret_code is the exit code: 0 it listens, else it ended or was
 * not ready within 10 s and was killed. Negative errno with the sentence. Before any thread. */
int background_start(int *ret_ready_fd, int *ret_code, struct err *err);
