/* See clock.h.
 *
 * A sleeper asks the kernel to wake it slack nanoseconds before it is due and spins the rest. The
 * slack follows the wake-up latencies that all threads of the process see: it rises at once, to
 * twice the latency, and falls by 1/32 a sleep, so that one quiet moment does not make the next
 * busy one late. The clock leaves the thread's timer slack (PR_SET_TIMERSLACK) alone: that is its
 * owner's choice. */
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SLACK_MIN_NS (50 * NS_PER_US)
#define SLACK_MAX_NS (200 * NS_PER_US)
#define SLACK_FIRST_NS (80 * NS_PER_US) /* the kernel's default timer slack is 50 us */

/* Partner: clock_sleep_until_ns() of every thread. Relaxed: it is a hint that
 * orders nothing, and an update lost to another thread does no harm. */
static _Atomic uint64_t slack_ns = SLACK_FIRST_NS;

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_slack_ns(void)
{
	return atomic_load_explicit(&slack_ns, memory_order_relaxed);
}

static void slack_learn(uint64_t latency_ns)
{
	uint64_t old = clock_slack_ns(), want, decayed = old - old / 32;

	want = latency_ns >= SLACK_MAX_NS ? SLACK_MAX_NS : 2 * latency_ns;
	if (want < decayed)
		want = decayed;
	if (want < SLACK_MIN_NS)
		want = SLACK_MIN_NS;
	if (want > SLACK_MAX_NS)
		want = SLACK_MAX_NS;
	if (want != old)
		atomic_store_explicit(&slack_ns, want, memory_order_relaxed);
}

void clock_learn_wake(uint64_t asked_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns >= asked_ns)
		slack_learn(now_ns - asked_ns);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

void clock_sleep_until_ns(uint64_t due_ns)
{
	uint64_t now_ns = clock_now_ns(), slack = clock_slack_ns();

	if (now_ns >= due_ns)
		return;
	if (due_ns - now_ns > slack) {
		uint64_t wake_ns = due_ns - slack;
		struct timespec ts = {
			.tv_sec = (time_t)(wake_ns / NS_PER_S),
			.tv_nsec = (long)(wake_ns % NS_PER_S),
		};

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		now_ns = clock_now_ns();
		if (now_ns >= wake_ns)
			slack_learn(now_ns - wake_ns);
	}
	while (now_ns < due_ns) {
		cpu_relax();
		now_ns = clock_now_ns();
	}
}

void clock_id(uint8_t ret[16])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned int n = 0, nibble;
	char text[64] = "";
	struct stat ns;

	memset(ret, 0, 16);
	if (!f)
		return;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	for (const char *p = text; *p && n < 32; p++) {
		if (sscanf((const char[2]){*p, 0}, "%1x", &nibble) != 1)
			continue;
		ret[n / 2] |= (uint8_t)(n % 2 ? nibble : nibble << 4);
		n++;
	}
	if (n && !stat("/proc/self/ns/time", &ns)) /* Linux has time namespaces since 5.6 */
		for (size_t i = 0; i < sizeof(ns.st_ino) && i < 16; i++)
			ret[i] ^= (uint8_t)(ns.st_ino >> 8 * i);
}
