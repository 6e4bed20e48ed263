/* nbox kernels: a table of kernels' times from a trace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/kernels/launches.h"
#include "nbox/kernels/write.h"

static int usage(void)
{
	fputs("usage: nbox kernels [--out FILE] TRACE\n\n"
	      "Makes the table of kernels for nbox run --gpu TABLE from a trace of the job on a GPU: the median of each kernel's launches.\n"
	      "TRACE is what torch.profiler's export_chrome_trace() writes; -: standard input, such as of gunzip -c. With\n"
	      "record_shapes=True the products of matrices have rows of their own, by their sizes. Prints the table, or writes FILE.\n",
	      stdout);
	return 0;
}

static int read_launches(const char *path, struct launches *ret, struct err *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? -1 : file_open(path, err), r;
	FILE *f = is_stdin ? stdin : fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!is_stdin && fd < 0)
		return fd;
	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	r = launches_read(f, path, ret, err);
	if (!is_stdin)
		fclose(f);
	return r;
}

static int write_table(struct launches *trace, const char *path, const char *out, struct err *err)
{
	FILE *f;
	int r = file_create(out, &f, err), closed;

	if (r < 0)
		return r;
	r = kernels_write(trace, path, f);
	closed = file_finish(f, out, err);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : closed;
}

int cmd_kernels(int argc, char **argv)
{
	const char *path = NULL, *out = "-";
	struct option_word w;
	struct err err = {""};
	struct launches trace;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		bool is_path = argv[i][0] != '-' || !argv[i][1];

		if (is_path && path)
			r = err_set(&err, EINVAL, "one trace at a time: '%s' and '%s'", path,
				    argv[i]);
		else if (is_path)
			path = argv[i++];
		else
			r = option_take(COMMAND_KERNELS, argc, argv, &i, &w, &err);
		if (r == 0 && !is_path && w.id == FLAG_HELP)
			return usage();
		if (r == 0 && !is_path)
			out = w.value;
	}
	if (r == 0 && !path)
		r = err_set(&err, EINVAL,
			    "which trace? nbox kernels TRACE; see nbox kernels --help");
	r = r == 0 ? read_launches(path, &trace, &err) : r;
	if (r < 0) {
		fprintf(stderr, "nbox kernels: %s\n", err.text);
		return 2;
	}
	r = write_table(&trace, path, out, &err);
	launches_deinit(&trace);
	if (r < 0)
		fprintf(stderr, "nbox kernels: %s\n", err.text);
	return r < 0;
}
