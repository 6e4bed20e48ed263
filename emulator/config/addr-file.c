/* See addr-file.h. Lines of a word and its value; '#' begins a comment; the token is in
 * hexadecimal, so that it may hold any byte. */
#include "config/addr-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define FILE_MAX 4096

static char *path_of(const char *dir, char *buf)
{
	snprintf(buf, PATH_MAX, "%.*s/" ADDR_FILE_NAME, PATH_MAX - 32, dir);
	return buf;
}

int addr_file_write(const char *dir, const struct addr_file *a, struct err *err)
{
	char path[PATH_MAX];
	int fd = open(path_of(dir, path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int r;

	if (!f) {
		r = errno;

		if (fd >= 0)
			close(fd);
		return err_set(
			err, r, "out: cannot write %s: %s%s", path, strerror(r),
			r == EEXIST
				? "; remove it if its nboxd has ended, or choose another directory"
				: "");
	}
	fprintf(f,
		"# where this run's nboxd listens, for `nbox status`; it goes with nboxd. The token is a secret.\n"
		"addr %s\npid %d\ntoken ",
		a->addr, a->pid);
	for (const char *p = a->token; *p; p++)
		fprintf(f, "%02x", (unsigned)(unsigned char)*p);
	fputc('\n', f);
	r = file_close(f);
	if (r == 0)
		return 0;
	unlink(path);
	return err_set(err, -r, "out: cannot write %s: %s", path, strerror(-r));
}

void addr_file_remove(const char *dir)
{
	char path[PATH_MAX];

	unlink(path_of(dir, path));
}

/* Return: 0; -EINVAL. */
static int parse_token(const char *hex, char *ret)
{
	size_t n = strlen(hex);

	if (n % 2 || n > 2 * WIRE_TOKEN_BYTES || strspn(hex, "0123456789abcdef") != n)
		return -EINVAL;
	for (size_t i = 0; i < n / 2; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};

		ret[i] = (char)strtoul(pair, NULL, 16);
		if (!ret[i])
			return -EINVAL;
	}
	ret[n / 2] = 0;
	return 0;
}

static int parse_line(char *line, struct addr_file *a)
{
	char *value = strchr(line, ' '), *end;
	long pid;

	if (line[0] == '#' || !line[0])
		return 0;
	if (!value)
		return -EINVAL;
	*value++ = 0;
	if (strcmp(line, "addr") == 0) {
		if (!value[0] || strlen(value) >= sizeof(a->addr))
			return -EINVAL;
		for (const char *p = value; *p; p++)
			if (*p <= ' ' || (unsigned char)*p >= 0x7f)
				return -EINVAL;
		strcpy(a->addr, value);
		return 0;
	}
	if (strcmp(line, "pid") == 0) {
		pid = strtol(value, &end, 10);
		if (*end || end == value || pid <= 0 || pid > INT_MAX)
			return -EINVAL;
		a->pid = (int)pid;
		return 0;
	}
	return strcmp(line, "token") == 0 ? parse_token(value, a->token) : -EINVAL;
}

int addr_file_parse(const char *text, size_t size, struct addr_file *ret, struct err *err)
{
	struct addr_file a = {.addr = ""};
	char line[512];
	unsigned n = 0;

	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t len = end ? (size_t)(end - text) - at : size - at;

		n++;
		if (len >= sizeof(line) || memchr(text + at, 0, len))
			return err_set(err, EINVAL, "line %u is none of this file", n);
		memcpy(line, text + at, len);
		line[len] = 0;
		if (parse_line(line, &a) < 0)
			return err_set(err, EINVAL, "line %u is none of this file", n);
		at += len + 1;
	}
	if (!a.addr[0] || !a.pid)
		return err_set(err, EINVAL, "it has no %s", a.addr[0] ? "pid" : "addr");
	*ret = a;
	return 0;
}

int addr_file_read(const char *dir, struct addr_file *ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	struct err why = {""};
	char path[PATH_MAX];
	size_t n;
	int r = file_read(path_of(dir, path), FILE_MAX, &text, &n, err);

	if (r < 0)
		return r;
	if (addr_file_parse(text, n, ret, &why) < 0)
		return err_set(err, EINVAL, "%s: %s", path, why.text);
	return 0;
}
