/* See load.h. */
#include "nbox/report/load.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"

/* The folder of a record that a run has left; "" of one that was renamed. */
static void folder_of(const char *record, char *ret, size_t size)
{
	const char *name = basename(record);

	ret[0] = 0;
	if (strcmp(name, "record.nbox") == 0 && (size_t)(name - record) < size)
		snprintf(ret, size, "%.*s", name > record ? (int)(name - record) : 1,
			 name > record ? record : ".");
}

int run_load(const char *word, struct loaded_run *ret, struct err *err)
{
	struct loaded_run run = {.info = {.exit_code = -1}};
	char path[PATH_MAX], record[PATH_MAX + 16];
	struct stat st;
	int r;

	snprintf(record, sizeof(record), "%s", runs_find(word, path));
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(run.dir, sizeof(run.dir), "%s", path);
		snprintf(record, sizeof(record), "%s/record.nbox", path);
	} else {
		folder_of(path, run.dir, sizeof(run.dir));
	}
	r = record_load(record, &run.rec, err);
	if (r == -ENOENT)
		return runs_not_found(word, err);
	if (r == 0 && run.dir[0])
		r = runs_read(run.dir, &run.info, err);
	run.rec.is_truncated &= !run.info.is_running; /* it may just be written */
	if (r < 0) {
		loaded_run_deinit(&run);
		return r;
	}
	*ret = run;
	return 0;
}

void loaded_run_deinit(struct loaded_run *run)
{
	record_deinit(&run->rec);
}

int run_report(const struct loaded_run *run, struct report *ret)
{
	int r = report_make(&run->rec, ret);

	if (r == 0)
		report_outcome(ret, run->info.is_running ? REPORT_UNDER_WAY : run->info.exit_code,
			       run->dir[0] ? run->dir : NULL);
	return r;
}
