/* nboxd's TCPStore server over real sockets: a thousand clients, clients that are killed, hang, or
 * send garbage, a second generation of workers. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store-client.h"

#define CLIENTS 1000

static struct daemon d;

/* --- crowds ---------------------------------------------------------------------------- */

/* Every client sets a key and waits for that of the next one but the last: all wait, then
 * one after the other is woken; each counts itself. A tenth is cut off in the middle. */
static void a_crowd_of_clients_wakes_one_another(void **state)
{
	static int fds[CLIENTS];
	struct rlimit limit;
	char key[32], next[32];
	uint64_t n_wait = 0;
	int last;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < CLIENTS + 50)
		return; /* not skip(): see test-symbols.c */
	nboxd_start(&d, "0,1");
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = store_client(&d);
		snprintf(key, sizeof(key), "key/%d", i);
		snprintf(next, sizeof(next), "go/%d", i);
		store_put(fds[i], request(STORE_SET, "kv", key, next));
		store_put(fds[i], request(STORE_WAIT, "nkk", UINT64_C(2), next, "all"));
	}
	for (int i = 0; i < CLIENTS; i += 10)
		close(fds[i]);
	last = store_client(&d);
	for (int i = 0; i < CLIENTS; i++) {
		snprintf(key, sizeof(key), "key/%d", i);
		snprintf(next, sizeof(next), "go/%d", i);
		store_put(last, request(STORE_WAIT, "nk", UINT64_C(1), key));
		assert_int_equal(store_take_u8(last), 0);
		store_put(last, request(STORE_SET, "kv", next, ""));
	}
	store_put(last, request(STORE_SET, "kv", "all", "x"));
	for (int i = 0; i < CLIENTS; i++) {
		if (i % 10 == 0)
			continue;
		assert_int_equal(store_take_u8(fds[i]), 0);
		store_put(fds[i], request(STORE_ADD, "ki", "count", INT64_C(1)));
		assert_int_equal(store_take_i64(fds[i]), ++n_wait);
		close(fds[i]);
	}
	assert_int_equal(n_wait, CLIENTS - CLIENTS / 10);
	store_put(last, request(STORE_GETNUMKEYS, ""));
	assert_int_equal(store_take_i64(last), 2 * CLIENTS + 2);
	close(last);
	daemon_stop(&d);
}

/* --- who means ill ------------------------------------------------------------------------ */

static void strangers_are_cut_off(void **state)
{
	int good, bad, half, quiet;
	uint64_t begun_ns;

	(void)state;
	nboxd_start(&d, "0,1");
	good = store_client(&d);
	/* a browser, a wrong magic number, a request before it, a length beyond all limits */
	bad = store_dial(&d);
	store_put(bad, request((enum store_op)'G', "k", "/ HTTP/1.1"));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = store_dial(&d);
	store_put(bad, request(STORE_VALIDATE, "u", (uint32_t)1));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = store_dial(&d);
	store_put(bad, request(STORE_SET, "kv", "k", "v"));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = store_client(&d);
	store_put(bad, request(STORE_WAIT, "n", UINT64_MAX));
	assert_true(is_hung_up(bad));
	close(bad);
	daemon_will_say(&d, "is no operation of a TCPStore");
	daemon_will_say(&d, "SET before VALIDATE");
	/* half a request and no more; nothing at all: only the second is cut off, after 5 s */
	half = store_client(&d);
	store_put(half, request(STORE_SET, "i", INT64_C(100)));
	begun_ns = clock_now_ns();
	quiet = store_dial(&d);
	assert_true(is_hung_up(quiet));
	assert_true(clock_now_ns() - begun_ns > 4 * NS_PER_S);
	assert_false(is_readable(half, 0));
	/* the other end is closed, the answers are still read */
	store_put(good, request(STORE_GET, "k", "k"));
	shutdown(good, SHUT_WR);
	assert_int_equal(store_take_i64(good), 0);
	close(good);
	close(half);
	close(quiet);
	daemon_stop(&d);
}

/* 63 MiB of answers to one that does not read do not keep others waiting. Then it reads them all,
 * although nboxd has seen the end of its requests before the last answer was sent. */
static void a_slow_reader_keeps_nobody_waiting(void **state)
{
	const size_t n = (1u << 20) - 100; /* less than a client may leave unread */
	CLEANUP(freep) char *value = malloc(n + 1), *got = malloc(n);
	int slow, quick;

	(void)state;
	assert_non_null(value);
	assert_non_null(got);
	memset(value, 'v', n);
	value[n] = '\0';
	nboxd_start(&d, "0,1");
	slow = store_client(&d);
	quick = store_client(&d);
	store_put(quick, request(STORE_SET, "kv", "big", value));
	store_put(quick, request(STORE_WAIT, "nk", UINT64_C(1), "big"));
	assert_int_equal(store_take_u8(quick), 0);
	for (int i = 0; i < 63; i++)
		store_put(slow, request(STORE_GET, "k", "big"));
	shutdown(slow, SHUT_WR);
	for (int i = 0; i < 100; i++) {
		store_put(quick, request(STORE_PING, "u", (uint32_t)getpid()));
		store_take(quick, got, 4);
	}
	for (int i = 0; i < 63; i++)
		assert_int_equal(store_take_value(slow, got, n), n);
	assert_true(is_hung_up(slow));
	close(slow);
	close(quick);
	daemon_stop(&d);
}

/* All workers go, others come: keys of the same names must not be answered with old values. */
static void new_workers_do_not_see_old_keys(void **state)
{
	const uint64_t due_ns =
		clock_now_ns() + 60 * NS_PER_S; /* it takes half a second of nboxd's */
	uint8_t ids[2][WIRE_ID_BYTES];
	int a, is_gone;

	(void)state;
	nboxd_start(&d, "0,1");
	a = store_client(&d);
	store_put(a, request(STORE_SET, "kv", "/default_pg/0//cuda//0", "old"));
	store_put(a, request(STORE_CHECK, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	assert_int_equal(store_take_u8(a), 0);
	do {
		close(a);
		sleep(1);
		a = store_client(&d);
		store_put(a, request(STORE_CHECK, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
		is_gone = store_take_u8(a);
	} while (!is_gone && clock_now_ns() < due_ns);
	assert_int_equal(is_gone, 1);
	close(a);
	daemon_stop(&d);
	/* so are the ids that nboxd made for virtual ranks: a new communicator is not the old one
	 */
	nboxd_start(&d, "2,3");
	for (int i = 0;
	     i < 2 || (!memcmp(ids[0], ids[1], WIRE_ID_BYTES) && clock_now_ns() < due_ns); i++) {
		a = store_client(&d);
		store_put(a, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
		assert_int_equal(store_take_value(a, ids[i > 0], WIRE_ID_BYTES), WIRE_ID_BYTES);
		close(a);
		sleep(1);
	}
	assert_memory_not_equal(ids[0], ids[1], WIRE_ID_BYTES);
	daemon_stop(&d);
}

/* A job whose nboxd is told to end: its clients are hung up, nboxd does not wait for them. */
static void nboxd_hangs_up_on_clients_when_it_ends(void **state)
{
	int a;

	(void)state;
	nboxd_start(&d, "0,1");
	a = store_client(&d);
	store_put(a, request(STORE_WAIT, "nk", UINT64_C(1), "never"));
	store_put(a, request(STORE_PING, "u", UINT32_C(1)));
	store_take(a, &(uint32_t){0}, 4);
	daemon_stop(&d);
	assert_true(is_hung_up(a));
	close(a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crowd_of_clients_wakes_one_another),
		cmocka_unit_test(strangers_are_cut_off),
		cmocka_unit_test(a_slow_reader_keeps_nobody_waiting),
		cmocka_unit_test(new_workers_do_not_see_old_keys),
		cmocka_unit_test(nboxd_hangs_up_on_clients_when_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
