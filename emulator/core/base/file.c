/* See file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int file_open(const char *path, struct err *err)
{
	CLEANUP(closep) int fd = -1;
	struct stat st = {.st_mode = 0};

	/* before it is opened, since that does something to some devices; and afterwards, since it
	 * may have changed */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (st.st_mode && !S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is no file, but a folder, a pipe or a device",
			       path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is no file any more", path);
	return steal_fd(&fd);
}

int file_read(const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err)
{
	CLEANUP(closep) int fd = file_open(path, err);
	CLEANUP(freep) char *text = NULL;
	size_t n = 0, capacity = 0;
	ssize_t got;

	if (fd < 0)
		return fd;
	do {
		if (n == capacity) {
			char *more = realloc(text, (capacity = 2 * capacity + 4096) + 1);

			if (!more)
				return err_set(err, ENOMEM, "no memory for %s", path);
			text = more;
		}
		got = read(fd, text + n, capacity - n);
		if (got < 0)
			return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
		n += (size_t)got;
		if (n > max)
			return err_set(err, EFBIG,
				       "%s has more than %zu bytes: it is some other file", path,
				       max);
	} while (got > 0);
	text[n] = '\0';
	*ret_text = steal_ptr(text);
	*ret_n = n;
	return 0;
}

int file_close(FILE *f)
{
	int r = ferror(f) ? -EIO : 0;

	return fclose(f) == 0 ? r : -errno;
}

bool file_is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

int file_create(const char *path, FILE **ret, struct err *err)
{
	FILE *f = file_is_stdout(path) ? stdout : fopen(path, "we");

	if (!f)
		return err_set(err, errno, "%s: cannot be written: %s", path, strerror(errno));
	*ret = f;
	return 0;
}

int file_finish(FILE *f, const char *path, struct err *err)
{
	int r = f == stdout ? 0 : file_close(f); /* main() looks after stdout */

	return r < 0 ? err_set(err, -r, "%s: cannot be written: %s", path, strerror(-r)) : 0;
}

int file_own_folder(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	*strrchr(buf, '/') = '\0';
	return 0;
}
