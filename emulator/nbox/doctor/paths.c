/* See paths.h. */
#include "nbox/doctor/paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

struct part {
	char *to;
	unsigned int need;
	const char *in_build, *installed, *what;
};

static int find_part(const struct part *p, const char *dir, struct err *err)
{
	char build[PATH_MAX], installed[PATH_MAX];

	if (snprintf(build, sizeof(build), "%s/%s", dir, p->in_build) >= PATH_MAX ||
	    snprintf(installed, sizeof(installed), "%s/%s", dir, p->installed) >= PATH_MAX)
		return err_set(err, ENAMETOOLONG, "the folder of nbox has too long a name: %s",
			       dir);
	if (access(build, R_OK) == 0)
		strcpy(p->to, build);
	else if (access(installed, R_OK) == 0)
		strcpy(p->to, installed);
	else
		return err_set(err, ENOENT,
			       "%s is missing: neither %s nor %s; build all of nbox "
			       "(ninja -C build) or run it where it was built",
			       p->what, build, installed);
	return 0;
}

int paths_find(struct paths *ret, unsigned int needs, struct err *err)
{
	struct paths found;
	const struct part parts[] = {
		{found.nboxd, PATHS_RUN, "nboxd", "nboxd", "nboxd"},
		{found.shim, PATHS_RUN | PATHS_SHIM, "libnbox.so", "../lib/nbox/libnbox.so",
		 "libnbox.so"},
		{found.models, PATHS_MODELS, "delaymodels", "../lib/nbox/delaymodels",
		 "the folder of delay models"},
		{found.standins, PATHS_HOST, "emulator/standins", "../lib/nbox/standins",
		 "the folder of the host CUDA runtime"},
		{found.perf, PATHS_PERF, "nbox-perf", "../lib/nbox/nbox-perf", "nbox-perf"},
		{found.oracle, PATHS_ORACLE, "nbox-oracle", "../lib/nbox/nbox-oracle",
		 "nbox-oracle"},
		{found.oracle_plugin, PATHS_ORACLE, "libnbox-oracle.so",
		 "../lib/nbox/libnbox-oracle.so", "libnbox-oracle.so"},
	};
	char dir[PATH_MAX];
	int r = file_own_folder(dir, sizeof(dir));

	memset(&found, 0, sizeof(found));
	if (r < 0)
		return err_set(err, -r, "/proc/self/exe: %s", strerror(-r));
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		r = parts[i].need & needs ? find_part(&parts[i], dir, err) : 0;
		if (r < 0)
			return r;
	}
	*ret = found;
	return 0;
}
