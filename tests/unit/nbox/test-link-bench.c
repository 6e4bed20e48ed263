/* The measurement of links between two processes: what it fills in, and what it says when the other
 * one cannot come. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmocka-all.h"
#include "nbox/doctor/link-bench.h"

static const char *address(void)
{
	static char addr[64];

	snprintf(addr, sizeof(addr), "shm:@nbox-bench-test-%d", (int)getpid());
	return addr;
}

static void rows_are_filled(void **state)
{
	const char *const addrs[] = {address(), "tcp:127.0.0.1:0"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
		struct link_bench b = {.addr = addrs[i],
				       .wait = LINK_BENCH_SPIN,
				       .budget_bytes = 1 << 20,
				       .most = 50,
				       .limit_ns = 100 * NS_PER_MS};
		struct link_bench_row rows[] = {{.bytes = 1}, {.bytes = 100}, {.bytes = 100000}};
		struct err err = {""};

		if (link_bench_run(&b, rows, ARRAY_SIZE(rows), &err))
			fail_msg("%s", err.text);
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			assert_true(rows[k].p50_us > 0 && rows[k].p50_us <= rows[k].p99_us);
			assert_true(rows[k].gbytes_per_s > 0 && rows[k].messages_per_s > 0);
			assert_in_range(rows[k].n_round_trips, 5, 50);
		}
	}
}

static int lowest_fd = -1;

/* As the process that answers is forked: it gets no other descriptor than the one that it keeps. */
static void take_descriptors(void)
{
	struct rlimit few;

	if (lowest_fd < 0 || getrlimit(RLIMIT_NOFILE, &few))
		return;
	few.rlim_cur = (rlim_t)lowest_fd + 1;
	setrlimit(RLIMIT_NOFILE, &few);
}

/* The other process cannot come: its own words are passed on. */
static void the_reason_is_passed_on(void **state)
{
	struct link_bench b = {.addr = address(),
			       .budget_bytes = 1,
			       .most = 5,
			       .limit_ns = NS_PER_MS};
	struct link_bench_row row = {.bytes = 1};
	struct err err = {""};
	int r;

	(void)state;
	lowest_fd = dup(0);
	assert_true(lowest_fd >= 0);
	close(lowest_fd);
	assert_int_equal(pthread_atfork(NULL, NULL, take_descriptors), 0);
	r = link_bench_run(&b, &row, 1, &err);
	lowest_fd = -1;
	assert_true(r < 0);
	if (!strstr(err.text, "the other process could not connect") ||
	    !strstr(err.text, "Too many open files"))
		fail_msg("%s", err.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_filled),
		cmocka_unit_test(the_reason_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
