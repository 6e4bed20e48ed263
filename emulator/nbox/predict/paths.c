#include "nbox/predict/paths.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static int is_folder_of_traces(const char *word)
{
	char record[PATH_MAX];
	struct stat st;

	snprintf(record, sizeof(record), "%s/record.nbox", word);
	return stat(word, &st) == 0 && S_ISDIR(st.st_mode) && stat(record, &st) < 0;
}

static int add(glob_t *to, const char *folder, const char *pattern)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "%s/%s", folder, pattern);
	return glob(text, GLOB_APPEND, NULL, to);
}

int paths_load(const char *const *words, size_t n, struct trace *ret, struct err *err)
{
	CLEANUP(globfree) glob_t found = {.gl_pathc = 0};
	CLEANUP(freep) const char **all = NULL;
	size_t n_all = 0;

	/* the first call must not append */
	glob("", 0, NULL, &found);
	for (size_t i = 0; i < n; i++)
		if (is_folder_of_traces(words[i])) {
			size_t before = found.gl_pathc;

			add(&found, words[i], "*.json");
			add(&found, words[i], "*.json.gz");
			if (found.gl_pathc == before)
				return err_set(err, EINVAL,
					       "%s: neither a run of nbox nor a folder with traces "
					       "(*.json, *.json.gz)",
					       words[i]);
		}
	all = malloc((n + found.gl_pathc + 1) * sizeof(*all));
	if (!all)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (!is_folder_of_traces(words[i]))
			all[n_all++] = words[i];
	for (size_t i = 0; i < found.gl_pathc; i++)
		all[n_all++] = found.gl_pathv[i];
	return trace_load(all, n_all, ret, err);
}
