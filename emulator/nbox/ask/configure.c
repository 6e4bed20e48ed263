/* See configure.h. */
#include "nbox/ask/configure.h"

#include <stdlib.h>

#include "nbox/doctor/paths.h"

extern char **environ;

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
