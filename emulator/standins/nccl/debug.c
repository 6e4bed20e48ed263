/* NCCL_DEBUG lines in NCCL's form, and the text of the last error. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "standins/nccl/debug.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int level = -1; /* not read yet */
static FILE *file;             /* under lock */
static char error_text[ERR_TEXT_MAX];

/* Up to its first dot. Return: its length. */
static size_t host_name(char ret[static HOST_NAME_MAX + 1])
{
	struct utsname u;

	ret[0] = 0;
	if (uname(&u) == 0)
		snprintf(ret, HOST_NAME_MAX + 1, "%.*s", (int)strcspn(u.nodename, "."), u.nodename);
	return strlen(ret);
}

static FILE *open_file(const char *pattern)
{
	char path[512];
	size_t n = 0;

	for (; *pattern && n + 80 < sizeof(path); pattern++) {
		if (pattern[0] == '%' && (pattern[1] == 'h' || pattern[1] == 'p')) {
			if (pattern[1] == 'h') {
				n += host_name(path + n);
			} else {
				n += (size_t)snprintf(path + n, 16, "%d", (int)getpid());
			}
			pattern++;
		} else {
			path[n++] = *pattern;
		}
	}
	path[n] = 0;
	return fopen(path, "ae");
}

static int read_level(void)
{
	static const char *const names[] = {"NONE", "VERSION", "WARN", "INFO", "TRACE"};
	const char *s = getenv("NCCL_DEBUG");
	int i;

	for (i = 0; s && i < 5; i++) {
		if (!strcasecmp(s, names[i]))
			return i;
	}
	return s && !strcasecmp(s, "ABORT") ? DEBUG_WARN : DEBUG_NONE;
}

/* Another thread may have held it. */
void debug_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

void debug_reset(void)
{
	const char *name = getenv("NCCL_DEBUG_FILE");
	int l = read_level();

	pthread_mutex_lock(&lock);
	if (file && file != stderr)
		fclose(file);
	file = l > DEBUG_VERSION && name && *name ? open_file(name) : NULL;
	if (!file)
		file = stderr;
	pthread_mutex_unlock(&lock);
	atomic_store_explicit(&level, l, memory_order_release);
	if (l >= DEBUG_VERSION)
		debug_line(DEBUG_VERSION, "NCCL version %d.%d.%d (nbox host NCCL)", NCCL_MAJOR,
			   NCCL_MINOR, NCCL_PATCH);
}

bool debug_on(enum debug_level l)
{
	int now = atomic_load_explicit(&level, memory_order_acquire);

	if (now < 0) {
		int saved = errno;

		debug_reset();
		errno = saved;
		now = atomic_load_explicit(&level, memory_order_acquire);
	}
	return (int)l <= now && l != DEBUG_NONE;
}

static void debug_text(enum debug_level l, const char *text)
{
	int saved = errno, device = -1;
	char host[HOST_NAME_MAX + 1];

	if (!debug_on(l))
		return;
	host_name(host);
	cudaGetDevice(&device);
	pthread_mutex_lock(&lock);
	if (file && l == DEBUG_VERSION)
		fprintf(file, "%s\n", text);
	else if (file)
		fprintf(file, "%s:%d:%ld [%d] NCCL %s %s\n", host, (int)getpid(),
			(long)syscall(SYS_gettid), device, l == DEBUG_WARN ? "WARN" : "INFO", text);
	if (file)
		fflush(file);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void debug_line(enum debug_level l, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	debug_text(l, text);
}

ncclResult_t fail(ncclResult_t code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&lock);
	memcpy(error_text, text, sizeof(error_text));
	pthread_mutex_unlock(&lock);
	debug_text(DEBUG_WARN, text);
	return code;
}

/* A copy for each thread: another thread's next error does not change it. */
const char *last_error(void)
{
	static _Thread_local char copy[ERR_TEXT_MAX];

	pthread_mutex_lock(&lock);
	memcpy(copy, error_text, sizeof(copy));
	pthread_mutex_unlock(&lock);
	return copy;
}

ncclResult_t result_of_errno(int code)
{
	switch (-code) {
	case 0:
		return ncclSuccess;
	case EINVAL:
	case EMSGSIZE:
		return ncclInvalidUsage;
	case ECONNRESET:
	case EPIPE:
	case ECANCELED:
	case ECONNREFUSED:
		return ncclRemoteError;
	case EPROTO:
		return ncclInternalError;
	default:
		return ncclSystemError;
	}
}

int errno_of_result(ncclResult_t code)
{
	return code == ncclInvalidUsage    ? EINVAL
	       : code == ncclRemoteError   ? ECONNRESET
	       : code == ncclInternalError ? EPROTO
					   : EIO;
}
