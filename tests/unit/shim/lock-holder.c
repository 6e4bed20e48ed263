/* For test-job-ranks.py, which calls it with the interpreter's lock: keeps the lock until a thread
 * without it has asked who is in a communicator. A thread of a job may do so while it waits for
 * another. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "shim/job/job-ranks.h"

#define PATIENCE_S 60

/* Return: ms that it took; -1: nothing came back; -2: an answer that is not possible. */
long ask_while_lock_is_held(void);

static void *ask(void *ctx)
{
	uint32_t *ranks = NULL;

	*(uint32_t *)ctx = job_ranks(3, 1, 1, 16, &ranks);
	free(ranks);
	return NULL;
}

long ask_while_lock_is_held(void)
{
	static uint32_t n; /* outlives a thread that never ends */
	uint64_t start_ns = clock_now_ns();
	struct timespec until;
	pthread_t thread;

	n = 0;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_create(&thread, NULL, ask, &n) != 0)
		return -1;
	if (pthread_timedjoin_np(thread, NULL, &until) != 0)
		return -1;
	return n ? -2 : (long)((clock_now_ns() - start_ns) / NS_PER_MS);
}
