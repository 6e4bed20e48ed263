/* Counts what the process holds: descriptors, threads, mappings of files and shared memory, bytes
 * in use on the heap, resident memory. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak.h"

/* Staging memory of the players is kept for later ops: 8 blocks of at most 1 MB here, in libnbox
 * and in host NCCL (player/pool.c); and malloc counts as used what it keeps for threads. */
#define HEAP_SLACK_BYTES (24 << 20)
#define RESIDENT_SLACK_BYTES (64 << 20)

/* There in a program with AddressSanitizer or ThreadSanitizer, whose heap is not malloc's. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
/* Only AddressSanitizer's: says on stderr who allocated most of what is there. */
extern void __sanitizer_print_memory_profile(size_t percent, size_t n_contexts)
	__attribute__((weak));

static long entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	long n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static long shared_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4300];
	long n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "(deleted)") || strstr(line, "/dev/shm/") ||
		     strstr(line, "/memfd:");
	if (f)
		fclose(f);
	return n;
}

static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long all = 0, pages = 0;

	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void take(struct census *ret)
{
	ret->fds = entries("/proc/self/fd");
	ret->threads = entries("/proc/self/task");
	ret->maps = shared_maps();
	ret->heap_bytes = __sanitizer_get_current_allocated_bytes
				  ? (long)__sanitizer_get_current_allocated_bytes()
				  : (long)(mallinfo2().uordblks + mallinfo2().hblkhd);
	ret->resident_bytes = resident();
}

/* Memory that grows once may be a buffer that was never needed as large: a leak grows in each lap.
 */
static bool grows(const struct census *base, const struct census *last, const struct census *now)
{
	return (now->heap_bytes > base->heap_bytes + HEAP_SLACK_BYTES &&
		now->heap_bytes > last->heap_bytes && last->heap_bytes > base->heap_bytes) ||
	       (!__sanitizer_get_current_allocated_bytes &&
		now->resident_bytes > base->resident_bytes + RESIDENT_SLACK_BYTES &&
		now->resident_bytes > last->resident_bytes &&
		last->resident_bytes > base->resident_bytes);
}

static bool is_more(const struct census *base, const struct census *now)
{
	return now->fds > base->fds || now->threads > base->threads || now->maps > base->maps;
}

/* What ends behind the caller's back has a quarter of a second without a change. */
void census_take(struct census *ret)
{
	struct census now;
	int calm = 0;

	take(ret);
	while (calm < 5) {
		nap_us(50000);
		take(&now);
		calm = is_more(&now, ret) || is_more(ret, &now) ? 0 : calm + 1;
		*ret = now;
	}
}

static void say(const char *what, const struct census *c)
{
	fprintf(stderr,
		"soak: %s: %ld descriptors, %ld threads, %ld shared mappings, heap %ld B, "
		"resident %ld B\n",
		what, c->fds, c->threads, c->maps, c->heap_bytes, c->resident_bytes);
}

static void list_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], to[300];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		if (n > 0)
			fprintf(stderr, "soak:   %s -> %.*s\n", e->d_name, (int)n, to);
	}
	if (d)
		closedir(d);
}

static void list_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], name[20] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			fprintf(stderr, "soak:   thread %s: %s", e->d_name, name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
}

void census_compare(const struct census *base, struct census *last, const char *when)
{
	double until = watch_now_s() + job.bound_s;
	struct census now;

	for (;;) {
		take(&now);
		if (!is_more(base, &now) && !grows(base, last, &now)) {
			*last = now;
			return;
		}
		if (watch_now_s() > until)
			break;
		nap_us(50000);
	}
	say("at the beginning", base);
	say(when, &now);
	if (now.fds > base->fds)
		list_fds();
	if (now.threads > base->threads)
		list_threads();
	if (now.heap_bytes > base->heap_bytes && __sanitizer_print_memory_profile)
		__sanitizer_print_memory_profile(95, 8);
	DIE(NULL, "the process holds more than at the beginning");
}
