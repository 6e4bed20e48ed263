/* See flags.h. */
#include "nbox/run/flags.h"

#include <errno.h>

#include "base/units.h"
#include "nbox/run/job.h"

void run_help(enum command command, FILE *f, const struct config *defaults)
{
	option_help(command, 20, f);
	fprintf(f, "\n");
	config_help(command, f, defaults);
}

static int take_procs(struct run *run, const char *value, struct err *err)
{
	if (units_count(value, &run->n_procs, NULL) < 0 || run->n_procs == 0 ||
	    run->n_procs > JOB_PROCS_MAX)
		return err_set(err, EINVAL, "--procs: '%s' is no number from 1 to %d", value,
			       JOB_PROCS_MAX);
	return 0;
}

int run_take(struct run *run, const struct option_word *w, struct err *err)
{
	const struct {
		enum option_id id;
		const char **text;
		bool *is_given;
	} flags[] = {
		{FLAG_CONFIG, &run->config_file, NULL},
		{FLAG_JSON, &run->json, NULL},
		{FLAG_NAME, &run->name, NULL},
		{FLAG_GPU, &run->gpu, NULL},
		{FLAG_DEVICE, &run->device_text, NULL},
		{FLAG_PROCS, &run->procs_text, NULL},
		{FLAG_LAUNCHER, NULL, &run->is_launcher},
		{FLAG_PLAIN, NULL, &run->is_plain},
		{FLAG_DRY_RUN, NULL, &run->is_dry},
		{FLAG_QUIET, NULL, &run->is_quiet},
	};
	size_t i = 0;

	if (w->id < CONFIG_OPTIONS)
		return config_take(run->config, w, err);
	while (flags[i].id != w->id)
		i++;
	if (flags[i].is_given) {
		*flags[i].is_given = true;
		return 0;
	}
	*flags[i].text = w->value;
	return w->id == FLAG_PROCS ? take_procs(run, w->value, err) : 0;
}
