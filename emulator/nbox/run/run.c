/* See run.h. */
#include "nbox/run/run.h"

#include <stdlib.h>

void run_deinit(struct run *r)
{
	r->config = config_free(r->config);
	launcher_line_deinit(&r->line);
	free(r->changed);
	free(r->local_command);
}

const char *run_command(const struct run *r)
{
	return r->printer ? r->printer->command : "run";
}

uint32_t run_count_procs(const struct run *r)
{
	if (r->n_procs)
		return (uint32_t)r->n_procs;
	return r->is_launcher ? 1 : (uint32_t)r->config->n_real;
}

bool run_is_assumed_size(const struct run *r)
{
	return !config_is_set(r->config, CONFIG_NODES) && !config_is_set(r->config, CONFIG_WORLD);
}
