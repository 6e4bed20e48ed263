/* See log.h. A line is formatted into one buffer and written with one write(), so that lines of
 * several processes in one file do not mix. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/plain.h"

#define LINE_MAX_BYTES 2048

static const char *const level_names[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

/* Written by log_open() and the setters, read by every thread that logs.
 * Relaxed: each is complete in itself. */
static _Atomic int log_level = LOG_WARN;
static _Atomic int log_rank = -1;
static _Atomic int log_fd = STDERR_FILENO;

/* Writes all, in spite of signals and short writes. It drops errors: there is nowhere to report
 * them. */
static void write_all(int fd, const char *buf, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, buf, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		buf += done;
		n -= (size_t)done;
	}
}

static void host_name(char *buf, size_t size)
{
	char *dot;

	if (gethostname(buf, size) < 0)
		snprintf(buf, size, "?");
	buf[size - 1] = '\0';
	dot = strchr(buf, '.');
	if (dot)
		*dot = '\0';
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void log_set_rank(int rank)
{
	atomic_store_explicit(&log_rank, rank, memory_order_relaxed);
}

int log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void open_level(const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(level_names); i++) {
		if (strcasecmp(text, level_names[i]) == 0) {
			log_set_level((enum log_level)i);
			return;
		}
	}
	dprintf(STDERR_FILENO,
		"nbox: NBOX_DEBUG=%.64s is unknown and ignored; levels: ERROR WARN INFO DEBUG TRACE\n",
		text);
}

/* Replaces %h and %p; anything else stays as it is. Return: 0, or -1 too long. */
static int expand_name(const char *pattern, char *buf, size_t size)
{
	char host[HOST_NAME_MAX + 1];
	size_t used = 0;

	host_name(host, sizeof(host));
	for (; *pattern; pattern++) {
		int n;

		if (pattern[0] == '%' && pattern[1] == 'h') {
			n = snprintf(buf + used, size - used, "%s", host);
			pattern++;
		} else if (pattern[0] == '%' && pattern[1] == 'p') {
			n = snprintf(buf + used, size - used, "%d", (int)getpid());
			pattern++;
		} else {
			n = snprintf(buf + used, size - used, "%c", *pattern);
		}
		if (n < 0 || (size_t)n >= size - used)
			return -1;
		used += (size_t)n;
	}
	return 0;
}

static void open_file(const char *pattern)
{
	char name[PATH_MAX] = "";
	int fd, old;

	if (expand_name(pattern, name, sizeof(name)) < 0) {
		dprintf(STDERR_FILENO, "nbox: NBOX_DEBUG_FILE is too long; logging to stderr\n");
		return;
	}
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		dprintf(STDERR_FILENO,
			"nbox: NBOX_DEBUG_FILE: cannot open %s: %m; logging to stderr\n", name);
		return;
	}
	old = atomic_exchange_explicit(&log_fd, fd, memory_order_relaxed);
	if (old != STDERR_FILENO)
		close(old);
}

/* A process may start without stdin, stdout or stderr. The next socket or file would get that
 * number, and prints would go there. So /dev/null takes it, for reading only: a write to stdout or
 * stderr still fails. */
static void take_standard_numbers(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

void log_open(void)
{
	const char *level = getenv("NBOX_DEBUG"), *file = getenv("NBOX_DEBUG_FILE");
	int saved_errno = errno;

	take_standard_numbers();
	if (level && level[0])
		open_level(level);
	if (file && file[0])
		open_file(file);
	errno = saved_errno;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES], host[HOST_NAME_MAX + 1];
	int saved_errno = errno, rank, n, len;
	va_list ap;

	if (!log_enabled(level))
		return;
	host_name(host, sizeof(host));
	rank = atomic_load_explicit(&log_rank, memory_order_relaxed);
	n = snprintf(line, sizeof(line), "%s:%d:%ld ", host, (int)getpid(),
		     (long)syscall(SYS_gettid));
	if (rank >= 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "[%d] ", rank);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "nbox %s ", level_names[level]);
	errno = saved_errno; /* for %m */
	va_start(ap, fmt);
	len = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (len > 0) {
		char *said = line + n;

		n += len;
		if (n > (int)sizeof(line) - 2)
			n = (int)sizeof(line) - 2;
		n -= line[n - 1] == '\n';
		line[n] = '\0';
		plain_text(said); /* other processes' words may be among it */
	}
	line[n++] = '\n';
	write_all(atomic_load_explicit(&log_fd, memory_order_relaxed), line, (size_t)n);
	errno = saved_errno;
}
