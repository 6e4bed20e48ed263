/* See read.h. */
#include "trace/read.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "trace/connect.h"
#include "trace/dpro.h"
#include "trace/events.h"
#include "trace/kineto.h"

static int take_member(void *ctx, const char *key, struct json_values *values,
		       struct err *err __attribute__((unused)))
{
	struct chrome *c = ctx;

	if (strcmp(key, "baseTimeNanoseconds") == 0) {
		chrome_number(values->list, NULL, &c->base_ns);
	} else if (strcmp(key, "distributedInfo") == 0) {
		json_values_deinit(&c->info);
		c->info = *values;
		*values = (struct json_values){0};
	}
	return 0;
}

static int take_event(void *ctx, const struct json_value *event, struct err *err)
{
	const char *phase = json_value_text(json_value_get(event, "ph"));
	const char *name = json_value_text(json_value_get(event, "name"));
	struct chrome *c = ctx;
	int r = 0;

	if (!phase || !name || !name[0])
		return 0;
	if (strcmp(phase, "M") == 0 && strcmp(name, "process_name") == 0)
		return chrome_name_slot(c, event, err);
	if (strcmp(phase, "X") != 0)
		return 0;
	r = kineto_event(c, event, err);
	if (r == 0)
		r = dpro_event(c, event, err);
	if (r < 0 && r != -ENOMEM)
		return err_prefix(err, r, "'%.80s'", name);
	return r < 0 ? r : 0;
}

int trace_read(FILE *f, const char *file, const char *host, struct trace *t, struct err *err)
{
	static const struct events_sink sink = {take_member, take_event};
	CLEANUP(chrome_deinit)
	struct chrome c = {.t = t, .file = file, .first = t->n_ops};
	int r = events_read(f, file, &sink, &c, err);

	if (r == 0 && t->n_ops == c.first)
		return err_set(err, EINVAL,
			       "%s: no event is an op that PyTorch's profiler (cat cpu_op, "
			       "cuda_runtime, kernel, ...) or dPRO (FW., BW., Comm., ...) writes",
			       file);
	if (r == 0)
		r = chrome_connect(&c, host, err);
	return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for the ops of %s", file) : r;
}
