/* See configure.h. */
#include "nbox/ask/configure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "nbox/doctor/paths.h"

extern char **environ;

#define NODE_GPUS 8

int configure(struct config *c, const char *file, struct err *err)
{
	int r = config_environment(c, environ, err);

	if (!file)
		file = getenv("NBOX_CONFIG");
	if (r == 0 && file && file[0])
		r = config_file(c, file, err);
	return r < 0 ? r : config_finish(c, err);
}

int ask_configure(struct config *c, const char *file, struct ask **ret, struct err *err)
{
	struct paths paths;
	int r = configure(c, file, err);

	if (r == 0)
		r = paths_find(&paths, PATHS_MODELS, err);
	return r < 0 ? r : ask_open(c, paths.models, ret, err);
}

int configure_world(struct config *c, uint32_t n_gpus, struct err *err)
{
	uint64_t nodes = (n_gpus + NODE_GPUS - 1) / NODE_GPUS;
	char words[3][32];
	int r;

	if (config_is_set(c, CONFIG_NODES) &&
	    units_count(config_text(c, CONFIG_NODES), &nodes, err) < 0)
		return err_prefix(err, -EINVAL, "--nodes");
	if (!nodes || n_gpus % nodes)
		return err_set(
			err, EINVAL,
			"%u GPUs do not stand on %llu nodes of as many: --nodes says on how many "
			"they do",
			n_gpus, (unsigned long long)nodes);
	snprintf(words[0], sizeof(words[0]), "%llu", (unsigned long long)nodes);
	snprintf(words[1], sizeof(words[1]), "%llu", (unsigned long long)(n_gpus / nodes));
	snprintf(words[2], sizeof(words[2]), "0-%u", n_gpus - 1);
	r = config_set(c, CONFIG_NODES, SOURCE_FLAG, words[0]);
	r = r < 0 ? r : config_set(c, CONFIG_GPUS_PER_NODE, SOURCE_FLAG, words[1]);
	return r < 0 ? r : config_set(c, CONFIG_REAL, SOURCE_FLAG, words[2]);
}
