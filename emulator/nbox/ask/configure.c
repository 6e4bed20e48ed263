/* See configure.h. */
#include "nbox/ask/configure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "nbox/doctor/paths.h"

extern char **environ;

#define NODE_GPUS 8

static int read_all(struct config *c, const char *file, struct err *err)
{
	int r = config_environment(c, environ, err);

	if (!file)
		file = getenv("NBOX_CONFIG");
	return r == 0 && file && file[0] ? config_file(c, file, err) : r;
}

static int open_all(struct config *c, struct ask **ret, struct err *err)
{
	struct paths paths;
	int r = config_finish(c, err);

	r = r < 0 ? r : paths_find(&paths, PATHS_MODELS, err);
	return r < 0 ? r : ask_open(c, paths.models, ret, err);
}

int configure(struct config *c, const char *file, struct err *err)
{
	int r = read_all(c, file, err);

	return r < 0 ? r : config_finish(c, err);
}

int ask_configure(struct config *c, const char *file, struct ask **ret, struct err *err)
{
	int r = read_all(c, file, err);

	return r < 0 ? r : open_all(c, ret, err);
}

/* *ret stays where the option was not given. */
static int take_count(const struct config *c, enum option_id id, uint64_t *ret, struct err *err)
{
	int r = config_is_set(c, id) ? units_count(config_text(c, id), ret, err) : 0;

	return r < 0 ? err_prefix(err, r, "--%s", options[id].name) : 0;
}

static int set_world(struct config *c, uint32_t n_gpus, struct err *err)
{
	bool has_nodes = config_is_set(c, CONFIG_NODES);
	bool has_each = config_is_set(c, CONFIG_GPUS_PER_NODE);
	uint64_t each = NODE_GPUS, nodes = 0;
	char words[3][32];
	int r = take_count(c, CONFIG_GPUS_PER_NODE, &each, err);

	r = r < 0 ? r : take_count(c, CONFIG_NODES, &nodes, err);
	if (r < 0)
		return r;
	if (!has_nodes)
		nodes = each ? (n_gpus + each - 1) / each : 0;
	if (!has_each)
		each = nodes ? n_gpus / nodes : 0;
	if (!nodes || nodes > n_gpus || nodes * each != n_gpus)
		return err_set(
			err, EINVAL,
			has_each ? "%u GPUs do not stand on %llu node%s of %llu: --nodes and "
				   "--gpus-per-node say on how many they do"
				 : "%u GPUs do not stand on %llu node%s of as many: --nodes says "
				   "on how many they do",
			n_gpus, (unsigned long long)nodes, nodes == 1 ? "" : "s",
			(unsigned long long)each);
	snprintf(words[0], sizeof(words[0]), "%llu", (unsigned long long)nodes);
	snprintf(words[1], sizeof(words[1]), "%llu", (unsigned long long)each);
	snprintf(words[2], sizeof(words[2]), "0-%u", n_gpus - 1);
	r = config_set(c, CONFIG_NODES, SOURCE_FLAG, words[0]);
	r = r < 0 ? r : config_set(c, CONFIG_GPUS_PER_NODE, SOURCE_FLAG, words[1]);
	return r < 0 ? r : config_set(c, CONFIG_REAL, SOURCE_FLAG, words[2]);
}

int ask_configure_world(struct config *c, const char *file, uint32_t n_gpus, struct ask **ret,
			struct err *err)
{
	int r = read_all(c, file, err);

	r = r < 0 ? r : set_world(c, n_gpus, err);
	return r < 0 ? r : open_all(c, ret, err);
}

int ask_configure_plain(struct config *c, const char *file, uint32_t n_gpus, struct ask **ret,
			struct err *err)
{
	int r = ask_configure_world(c, file, n_gpus, ret, err);

	if (r < 0 || !(c->n_what_ifs || c->n_failures))
		return r;
	*ret = ask_close(*ret);
	return err_set(err, EINVAL,
		       "what-ifs of variables and of the file are of runs: nbox retime plays them");
}
