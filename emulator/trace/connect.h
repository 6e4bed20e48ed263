/* What is known of a file's ops once all of it is read: ranks, launches, steps, waits. */
#pragma once

#include "trace/chrome.h"

/* @host: whose clock the file has, where it does not say so; NULL: by its name
 * (HOST_PID.TIME.pt.trace.json, as torch.profiler's tensorboard_trace_handler has it), or a host of
 * its own. Return: 0; -EINVAL, -EEXIST with the sentence; -ENOMEM. */
int chrome_connect(struct chrome *c, const char *host, struct err *err);
