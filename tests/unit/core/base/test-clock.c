/* The clock and its sleep: never early, on any machine. How late it is depends on
 * the machine and is a benchmark's business. */
#include "cmocka-all.h"
#include "rng.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

static void *sleeper(void *arg)
{
	uint64_t *n_early = arg;
	struct rng rng;

	rng_seed(&rng, 6, (uint64_t)(uintptr_t)arg);
	for (int i = 0; i < 100; i++) {
		uint64_t due_ns = clock_now_ns() + rng_u64(&rng) % (600 * NS_PER_US);

		clock_sleep_until_ns(due_ns);
		if (clock_now_ns() < due_ns)
			(*n_early)++;
		if (clock_slack_ns() < 20 * NS_PER_US || clock_slack_ns() > 200 * NS_PER_US)
			(*n_early)++;
	}
	return NULL;
}

static void a_sleep_never_ends_early(void **state)
{
	uint64_t n_early[3] = {0};
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sleeper, &n_early[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(n_early[i], 0);
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Signals shorten no sleep. */
static void signals_do_not_end_a_sleep(void **state)
{
	struct sigaction old, action = {.sa_handler = on_alarm};
	struct itimerspec each_ms = {{0, NS_PER_MS}, {0, NS_PER_MS}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	uint64_t due_ns;
	timer_t timer;

	(void)state;
	sigaction(SIGALRM, &action, &old);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &each_ms, NULL), 0);
	due_ns = clock_now_ns() + 20 * NS_PER_MS;
	clock_sleep_until_ns(due_ns);
	assert_true(clock_now_ns() >= due_ns);
	timer_delete(timer);
	sigaction(SIGALRM, &old, NULL);
}

static void a_past_time_returns_at_once(void **state)
{
	uint64_t now_ns = clock_now_ns();

	(void)state;
	clock_sleep_until_ns(0);
	clock_sleep_until_ns(now_ns);
	assert_true(clock_now_ns() >= now_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_never_ends_early),
		cmocka_unit_test(signals_do_not_end_a_sleep),
		cmocka_unit_test(a_past_time_returns_at_once),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
