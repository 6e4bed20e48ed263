/* See out.h. */
#include "nbox/export/out.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"

static ssize_t take(void *gz, const char *data, size_t n)
{
	return n && gzwrite(gz, data, (unsigned int)n) == 0 ? -1 : (ssize_t)n;
}

static int finish(void *gz)
{
	return gzclose(gz) == Z_OK ? 0 : -1;
}

int out_create(const char *path, FILE **ret, struct err *err)
{
	size_t n = strlen(path);
	gzFile gz;

	if (n < 3 || strcmp(path + n - 3, ".gz") != 0)
		return file_create(path, ret, err);
	errno = 0;
	gz = gzopen(path, "wbe");
	if (!gz)
		return err_set(err, errno ? errno : ENOMEM, "%s: cannot be written: %s", path,
			       strerror(errno ? errno : ENOMEM));
	*ret = fopencookie(gz, "w", (cookie_io_functions_t){.write = take, .close = finish});
	if (!*ret) {
		gzclose(gz);
		return err_set(err, ENOMEM, "no memory to write %s", path);
	}
	return 0;
}
