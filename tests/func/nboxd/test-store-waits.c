/* What nboxd says of clients of its TCPStore that wait: who, for what, and that the crowd is few
 * lines. Two nboxd side by side, since each sentence takes its seconds. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store-client.h"

static int count_in_log(const struct daemon *d, const char *text)
{
	int n = 0;

	for (const char *p = d->log; (p = strstr(p, text)); p++)
		n++;
	return n;
}

/* What waits is named after 5 s, and is in the status. */
static void two_are_told(struct daemon *d)
{
	struct fake f = {0};
	int a, b;

	nboxd_start(d, "2,3");
	a = store_client(d);
	b = store_client(d);
	store_put(a, request(STORE_PING, "u", UINT32_C(4000000000)));
	store_take(a, &(uint32_t){0}, 4);
	store_put(a, request(STORE_WAIT, "nkk", UINT64_C(2), "/default_pg/0//cpu//0/1", "/other"));
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/a \"key\"\n"));
	daemon_will_say(
		d,
		"for key \"/default_pg/0//cpu//0/1\" and 1 more; it is the gloo address of virtual "
		"rank 1 in the default group");
	daemon_will_say(d, "for key \"/a ?key??\"; no real rank has set it yet");
	fake_connect(&f, d->addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1));
	assert_non_null(strstr(f.status, "\"store\": {\"addr\": \"127.0.0.1:"));
	assert_non_null(strstr(f.status, "\"clients\": 2, \"keys\": 0, "));
	assert_non_null(strstr(f.status, "pid 4000000000"));
	assert_non_null(strstr(f.status, "gloo address of virtual rank 1"));
	fake_close(&f);
	store_put(a, request(STORE_CANCEL_WAIT, ""));
	assert_int_equal(store_take_u8(a), 1);
	close(a);
	close(b);
	daemon_stop(d);
}

/* All who wait for a key are one line, and many keys are few lines. */
static void many_waits_are_few_lines(void **state)
{
	const uint64_t begun_ns = clock_now_ns();
	struct daemon crowd, two;
	int fds[60];
	char key[32];

	(void)state;
	nboxd_start(&crowd, "2,3");
	for (int i = 0; i < 60; i++) {
		fds[i] = store_client(&crowd);
		snprintf(key, sizeof(key), "/%d", i < 30 ? 0 : i);
		store_put(fds[i], request(STORE_WAIT, "nk", UINT64_C(1), key));
		if (i >= 30)
			usleep(20000); /* nboxd looks at each of them by itself */
	}
	two_are_told(&two);
	daemon_will_say(&crowd, "for key \"/0\"; no real rank has set it yet");
	daemon_will_say(&crowd, "more clients have waited 5 s; nbox status lists what for");
	assert_int_equal(count_in_log(&crowd, "for key \"/0\""), 1);
	assert_non_null(strstr(crowd.log, "(so do 29 others)"));
	/* 8 in 10 s; all in the first or second of these, unless the machine was slow */
	assert_in_range(count_in_log(&crowd, "has waited"), 8,
			8 * (2 + (clock_now_ns() - begun_ns) / (10 * NS_PER_S)));
	for (int i = 0; i < 60; i++)
		close(fds[i]);
	daemon_stop(&crowd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_waits_are_few_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
