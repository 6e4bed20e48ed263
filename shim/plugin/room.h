/* Of the whole room: whether it is in use, and NCCL's log. Any thread. */
#pragma once

#include <stdbool.h>

#include "nccl-plugin/plugin.h"

#define PLUGIN_NAME "nbox" /* as in NCCL_NET */

/* plugin_start() was called: else NCCL takes another network and another profiler. */
bool room_is_open(void);
/* Once known; the same for good. */
void room_set_log(plugin_log_fn log);
/* A warning in NCCL's log. Return: PLUGIN_INVALID_USAGE. */
int room_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
