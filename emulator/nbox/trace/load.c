/* See load.h. */
#include "nbox/trace/load.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "engine/record.h"
#include "nbox/report/load.h"
#include "nbox/trace/from-run.h"
#include "trace/align.h"
#include "trace/finish.h"
#include "trace/guess.h"
#include "trace/read.h"

static ssize_t read_gz(void *gz, char *buf, size_t n)
{
	return gzread(gz, buf, (unsigned int)n);
}

static int close_gz(void *gz)
{
	return gzclose(gz) == Z_OK ? 0 : -1;
}

/* Whether packed or not. */
static int load_file(const char *path, struct trace *t, struct err *err)
{
	int fd = file_open(path, err), r;
	gzFile gz = fd >= 0 ? gzdopen(fd, "rb") : NULL;
	FILE *f = gz ? fopencookie(gz, "r",
				   (cookie_io_functions_t){.read = read_gz, .close = close_gz})
		     : NULL;

	if (fd < 0)
		return fd;
	if (!f) {
		if (gz)
			gzclose(gz);
		else
			close(fd);
		return err_set(err, ENOMEM, "no memory to read %s", path);
	}
	gzbuffer(gz, 1 << 17);
	setvbuf(f, NULL, _IOFBF, 1 << 17);
	r = trace_read(f, path, NULL, t, err);
	fclose(f);
	return r;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool trace_names_run(const char *word)
{
	char magic[RECORD_MAGIC_BYTES] = {0}, record[PATH_MAX];
	struct stat st;
	FILE *f;

	snprintf(record, sizeof(record), "%s/record.nbox", word);
	if (is_folder(word))
		return stat(record, &st) == 0;
	if (stat(word, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	f = fopen(word, "re");
	if (!f)
		return false;
	if (fread(magic, 1, sizeof(magic), f) < sizeof(magic))
		magic[0] = 0;
	fclose(f);
	return memcmp(magic, RECORD_MAGIC, RECORD_VERSION_AT) == 0;
}

static int load_run(const char *word, struct trace *t, struct err *err)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {.dir = ""};
	int r = run_load(word, &run, err);

	if (r == 0)
		r = trace_of_run(&run.rec, word, t, err);
	return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for the ops of %s", word) : r;
}

static int is_trace(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t n = strlen(name);

	return name[0] != '.' && ((n > 5 && strcmp(name + n - 5, ".json") == 0) ||
				  (n > 8 && strcmp(name + n - 8, ".json.gz") == 0));
}

static int load_folder(const char *folder, struct trace *t, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_trace, alphasort), r = 0;

	if (n < 0)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	if (!n)
		r = err_set(err, EINVAL,
			    "%s: neither a run of nbox nor a folder with traces (*.json, "
			    "*.json.gz)",
			    folder);
	for (int i = 0; i < n; i++) {
		CLEANUP(freep) char *path = NULL;

		if (r == 0 && asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0) {
			path = NULL;
			r = err_set(err, ENOMEM, "no memory for the names in %s", folder);
		}
		if (r == 0)
			r = load_file(path, t, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int trace_load(const char *const *words, size_t n, struct trace *ret, struct err *err)
{
	CLEANUP(trace_deinit) struct trace t = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = trace_names_run(words[i]) ? load_run(words[i], &t, err)
		    : is_folder(words[i])     ? load_folder(words[i], &t, err)
					      : load_file(words[i], &t, err);
	if (r == 0 && trace_finish(&t) < 0)
		r = err_set(err, ENOMEM, "no memory for %u ops", t.n_ops);
	if (r == 0) {
		*ret = t;
		t = (struct trace){0};
	}
	return r;
}

static int needs_kernels(const struct trace *t, const char *path, struct err *err)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].kind != TRACE_HOST && t->ops[i].kind != TRACE_CALL &&
		    t->ops[i].kind != TRACE_SYNC)
			return 0;
	return err_set(err, EINVAL,
		       "%s: no kernel of a GPU is in it: PyTorch's profiler writes them on a "
		       "machine with GPUs, with ProfilerActivity.CUDA",
		       path);
}

static int align(struct trace *t, struct err *err)
{
	struct clocks clocks = {.hosts = NULL};
	int r = align_find(t, false, &clocks, err);

	if (r == 0 && align_apply(t, &clocks) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	clocks_deinit(&clocks);
	return r;
}

int trace_load_to_play(const char *const *words, size_t n, struct trace *ret, struct err *err)
{
	CLEANUP(trace_deinit) struct trace t = {0};
	int r = trace_load(words, n, &t, err);

	if (r == 0)
		r = needs_kernels(&t, words[0], err);
	if (r == 0 && t.n_hosts > 1)
		r = align(&t, err);
	if (r == 0 && trace_guess_waits(&t) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0) {
		*ret = t;
		t = (struct trace){0};
	}
	return r;
}
