/* See runs.h. */
#include "nbox/report/runs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "config/addr-file.h"
#include "nbox/json/json-file.h"
#include "nbox/report/live-run.h"

#define COMMAND_MAX (1 << 20) /* bytes of command.txt */
#define NAME_MAX_BYTES 128

int runs_check_name(const char *name, struct err *err)
{
	char text[NAME_MAX_BYTES + 1];

	snprintf(text, sizeof(text), "%s", name);
	if (!name[0] || name[0] == '.' || name[0] == '-' || strchr(name, '/') ||
	    strlen(name) > NAME_MAX_BYTES || strcmp(plain_text(text), name) != 0)
		return err_set(err, EINVAL,
			       "--name '%s': that is no name of a folder: up to %d characters, no "
			       "'/', no '.' or '-' at the "
			       "beginning, and nothing that cannot be printed",
			       text, NAME_MAX_BYTES);
	return 0;
}

static bool has_record(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/record.nbox", dir) < (int)sizeof(path) &&
	       lstat(path, &st) == 0;
}

#define RECORD "/record.nbox"

char *runs_find(const char *word, char *ret)
{
	char *end;

	snprintf(ret, PATH_MAX, LIVE_RUN_TOP "/%s", word);
	if (strchr(word, '/') || has_record(word) || !has_record(ret))
		snprintf(ret, PATH_MAX, "%s", word);
	end = strlen(ret) < strlen(RECORD) ? ret : ret + strlen(ret) - strlen(RECORD);
	if (strcmp(end, RECORD) == 0)
		*end = '\0';
	return ret;
}

int runs_not_found(const char *word, struct err *err)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "%s", word);
	return err_set(err, ENOENT,
		       "%s is neither a results directory nor the name of a run below " LIVE_RUN_TOP
		       "/; nbox list names those",
		       plain_text(text));
}

/* The words of command.txt behind `--`, else all; one a line there. */
static void read_command(const char *dir, char *ret, size_t size)
{
	char path[PATH_MAX];
	CLEANUP(freep) char *text = NULL;
	const char *from;
	size_t n;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%.*s/command.txt", PATH_MAX - 32, dir);
	if (file_read(path, COMMAND_MAX, &text, &n, NULL) < 0)
		return;
	from = strstr(text, "\n--\n");
	from = strncmp(text, "--\n", 3) == 0 ? text + 3 : from ? from + 4 : text;
	snprintf(ret, size, "%s", from);
	n = strlen(ret);
	while (n && ret[n - 1] == '\n')
		ret[--n] = '\0';
	for (char *p = ret; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	plain_text(ret);
}

static void read_summary(const char *dir, struct run_info *ret)
{
	char path[PATH_MAX];
	CLEANUP(json_freep) json_t *o = NULL;
	json_t *steps, *code, *ms;

	snprintf(path, sizeof(path), "%.*s/summary.json", PATH_MAX - 32, dir);
	if (json_file_read(path, &o, NULL) < 0)
		return;
	steps = json_object_get(o, "steps");
	ret->has_summary = steps != NULL;
	code = json_object_get(o, "exit_code");
	ms = json_object_get(json_object_get(steps, "ms"), "p50");
	if (json_is_integer(code) && json_integer_value(code) >= 0 &&
	    json_integer_value(code) < 256)
		ret->exit_code = (int)json_integer_value(code);
	if (json_is_number(ms) && json_integer_value(json_object_get(steps, "count")) > 0) {
		ret->n_steps = (uint64_t)json_integer_value(json_object_get(steps, "count"));
		ret->step_ms = json_number_value(ms);
	}
}

int runs_read(const char *dir, struct run_info *ret, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%.*s/record.nbox", PATH_MAX - 32, dir);
	r = record_load_header(path, &ret->header, err);
	if (r < 0)
		return r;
	plain_text(ret->header.model);
	ret->exit_code = -1;
	ret->n_steps = 0;
	ret->has_summary = false;
	read_command(dir, ret->command, sizeof(ret->command));
	read_summary(dir, ret);
	snprintf(path, sizeof(path), "%.*s/" RECORD_ENDS, PATH_MAX - 32, dir);
	ret->has_failed = ret->exit_code < 0 ? lstat(path, &st) == 0 : ret->exit_code > 0;
	snprintf(path, sizeof(path), "%.*s/" ADDR_FILE_NAME, PATH_MAX - 32, dir);
	ret->is_running = lstat(path, &st) == 0;
	return 0;
}

static int by_start(const void *pa, const void *pb)
{
	const struct run_info *a = pa, *b = pb;

	if (a->header.start_unix_ns != b->header.start_unix_ns)
		return a->header.start_unix_ns < b->header.start_unix_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

int runs_list(const char *top, struct run_info **ret_runs, size_t *ret_n, size_t *ret_n_unreadable,
	      struct err *err)
{
	CLEANUP(freep) struct run_info *runs = NULL;
	size_t n = 0, capacity = 0;
	DIR *d = opendir(top);

	*ret_runs = NULL;
	*ret_n = *ret_n_unreadable = 0;
	if (!d)
		return errno == ENOENT ? 0 : err_set(err, errno, "%s: %s", top, strerror(errno));
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		char dir[PATH_MAX];

		if (e->d_name[0] == '.' ||
		    snprintf(dir, sizeof(dir), "%s/%s", top, e->d_name) >= (int)sizeof(dir) ||
		    !has_record(dir))
			continue;
		if (n == capacity) {
			struct run_info *grown =
				reallocarray(runs, 2 * capacity + 16, sizeof(*runs));

			if (!grown) {
				closedir(d);
				return err_set(err, ENOMEM, "no memory for more than %zu runs", n);
			}
			runs = grown;
			capacity = 2 * capacity + 16;
		}
		snprintf(runs[n].name, sizeof(runs[n].name), "%s", e->d_name);
		plain_text(runs[n].name);
		if (runs_read(dir, &runs[n], NULL) < 0)
			++*ret_n_unreadable;
		else
			n++;
	}
	closedir(d);
	qsort(runs, n, runs ? sizeof(*runs) : 1, by_start);
	*ret_runs = steal_ptr(runs);
	*ret_n = n;
	return 0;
}
