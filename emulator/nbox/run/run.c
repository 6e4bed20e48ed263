/* See run.h. */
#include "nbox/run/run.h"

#include <stdlib.h>

void run_deinit(struct run *run)
{
	run->config = config_free(run->config);
	launcher_line_deinit(&run->line);
	free(run->changed);
	free(run->local_command);
}

const char *run_command(const struct run *run)
{
	return run->printer ? run->printer->command : "run";
}

uint32_t run_count_procs(const struct run *run)
{
	if (run->n_procs)
		return (uint32_t)run->n_procs;
	return run->is_launcher ? 1 : (uint32_t)run->config->n_real;
}

bool run_is_assumed_size(const struct run *run)
{
	return !config_is_set(run->config, CONFIG_NODES) &&
	       !config_is_set(run->config, CONFIG_WORLD);
}
