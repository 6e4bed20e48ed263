/* See host-clock.h. */
#include "host-clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS 200000u /* a look costs 4 us; what it misses the next one finds */

static _Atomic uint64_t behind_ns;                  /* CLOCK_MONOTONIC */
static _Thread_local uint64_t waited_ns, looked_ns; /* 0: the thread has not queued work */

/* The second number: how long the thread was ready to run and did not. 0: the kernel does not say.
 */
static uint64_t read_waited_ns(void)
{
	char text[64], *second;
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &second, 10);
	return strtoull(second, NULL, 10);
}

static void look(uint64_t now_ns)
{
	int saved = errno;
	uint64_t before = waited_ns;

	waited_ns = read_waited_ns();
	if (looked_ns && waited_ns > before)
		atomic_fetch_add_explicit(&behind_ns, waited_ns - before, memory_order_relaxed);
	looked_ns = now_ns;
	errno = saved;
}

uint64_t host_clock_now_ns(void)
{
	uint64_t now_ns = clock_now_ns();

	if (looked_ns && now_ns - looked_ns > LOOK_NS)
		look(now_ns);
	return now_ns - atomic_load_explicit(&behind_ns, memory_order_relaxed);
}

uint64_t host_clock_queue_ns(void)
{
	if (!looked_ns)
		look(clock_now_ns());
	return host_clock_now_ns();
}

void host_clock_not_before(uint64_t ns)
{
	uint64_t now_ns = clock_now_ns(), behind;

	if (!looked_ns || ns > now_ns)
		return;
	if (now_ns - looked_ns > LOOK_NS)
		look(now_ns);
	behind = atomic_load_explicit(&behind_ns, memory_order_relaxed);
	while (behind > now_ns - ns &&
	       !atomic_compare_exchange_weak_explicit(&behind_ns, &behind, now_ns - ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* For libnbox.so, in place of CLOCK_MONOTONIC. */
__attribute__((visibility("default"))) uint64_t nbox_host_now(void);
uint64_t nbox_host_now(void)
{
	return host_clock_now_ns();
}
