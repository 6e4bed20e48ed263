/* See loader-path.h. */
#include "nbox/run/loader-path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int loader_path(const char *path, const char *dividers, char *ret, size_t size, struct err *err)
{
	int fd, n;

	if (!strpbrk(path, dividers)) {
		n = snprintf(ret, size, "%s", path);
	} else {
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return err_set(err, errno, "%s: %s", path, strerror(errno));
		n = snprintf(ret, size, "/proc/%d/fd/%d", (int)getpid(), fd);
	}
	return n < (int)size ? 0 : err_set(err, ENAMETOOLONG, "%s: the name is too long", path);
}
