/* The two futex calls that the host runtime sleeps with. They are the shared kind, so that a
 * writer in another process, or one that does not know where the word lies, can wake too. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *@word is @expected, at most @timeout_ns; may return early for no reason. */
static inline void futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

static inline void futex_wake_all(const _Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
