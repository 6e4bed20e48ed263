/* Chrome's trace events (JSON), event by event, so that a file of any size takes no memory of its
 * own but 2 MiB. The file is somebody else's:
 * what it holds is bounded. */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "trace/json-value.h"

struct events_sink {
	/* What is beside the list of events; NULL: nobody asks. What it takes out of @values, zeros
	 * in its place, is its own. */
	int (*member)(void *ctx, const char *key, struct json_values *values, struct err *err);
	/* @event: an object, borrowed for the call. */
	int (*event)(void *ctx, const struct json_value *event, struct err *err);
	/* Both return 0; negative errno, perhaps with the sentence. */
};

/* @file: its name, for sentences. An error of @sink's names file and event. Return: 0; -EINVAL it
 * is no such trace, or ends in the middle; -EFBIG; -EIO; -ENOMEM; each with the sentence. */
int events_read(FILE *f, const char *file, const struct events_sink *sink, void *ctx,
		struct err *err);
