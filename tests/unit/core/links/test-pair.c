/* shm and tcp links between two threads: frames of 0 to 17 MB, polling, sleeping or both, with
 * holds and discards. And listeners. */
#include "conversation.h"
#include "folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static void shm_converses_polling(void **state)
{
	(void)state;
	converse(shm_addr, 150, 0, 0, 0);
}

static void shm_converses_sleeping(void **state)
{
	(void)state;
	converse(shm_addr, 150, 100, 100, 0);
}

static void shm_converses_with_holds(void **state)
{
	(void)state;
	converse(shm_addr, 150, 50, 70, 20);
}

static void tcp_converses_sleeping(void **state)
{
	(void)state;
	converse("tcp:127.0.0.1:0", 150, 100, 100, 0);
}

static void tcp_converses_with_holds(void **state)
{
	(void)state;
	converse("tcp:localhost:0", 150, 30, 80, 20);
}

static void tcp_over_ipv6(void **state)
{
	struct listener *l = NULL;

	(void)state;
	if (listener_open("tcp:[::1]:0", &l, NULL))
		return; /* no IPv6 here; not skip(): see test-symbols.c */
	listener_free(l);
	converse("tcp:[::1]:0", 50, 50, 50, 0);
}

/* As NCCL's may be: they go through rings and sockets in pieces. */
static void bodies_longer_than_the_link_arrive(void **state)
{
	(void)state;
	long_bytes = (UINT64_C(17) << 20) + 5;
	converse(shm_addr, 6, 0, 0, 0);
	converse(shm_addr, 6, 60, 60, 20);
	converse("tcp:127.0.0.1:0", 6, 60, 60, 20);
	long_bytes = 0;
}

/* --- listeners ------------------------------------------------------------------ */

static void a_live_listener_is_refused(void **state)
{
	static const char *const kinds[] = {NULL, "tcp:127.0.0.1:0"};
	struct listener *l, *again;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(listener_open(kinds[i] ? kinds[i] : shm_addr, &l, &err), 0);
		assert_int_equal(listener_open(listener_addr(l), &again, &err), -EADDRINUSE);
		assert_non_null(strstr(err.text, "another nboxd"));
		assert_non_null(strstr(err.text, "--addr"));
		listener_free(l);
	}
}

static void a_dead_socket_is_replaced(void **state)
{
	struct listener *l = NULL;
	struct stat st;
	struct err err;
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	if (fork() == 0) { /* dies without removing its socket */
		if (listener_open(shm_addr, &l, &err))
			_exit(1);
		_exit(write(fds[1], "x", 1) != 1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	while (read(fds[0], &byte, 1) > 0)
		;
	close(fds[0]);
	assert_int_equal(stat(shm_addr + 4, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(listener_open(shm_addr, &l, &err), 0);
	listener_free(l);
	assert_int_equal(stat(shm_addr + 4, &st), -1);
}

static void what_is_not_a_socket_stays(void **state)
{
	struct listener *l;
	struct err err;
	FILE *f = fopen(shm_addr + 4, "w");

	(void)state;
	assert_non_null(f);
	fclose(f);
	assert_int_equal(listener_open(shm_addr, &l, &err), -EEXIST);
	assert_non_null(strstr(err.text, "is not a socket"));
	assert_int_equal(unlink(shm_addr + 4), 0);
}

/* A process that took the name over keeps it. */
static void only_its_own_socket_is_removed(void **state)
{
	struct listener *old, *new;
	struct stat st;
	struct err err;

	(void)state;
	assert_int_equal(listener_open(shm_addr, &old, &err), 0);
	assert_int_equal(unlink(shm_addr + 4), 0);
	assert_int_equal(listener_open(shm_addr, &new, &err), 0);
	listener_free(old);
	assert_int_equal(stat(shm_addr + 4, &st), 0);
	listener_free(new);
}

static void nobody_there_is_a_sentence(void **state)
{
	struct peer p;
	struct err err;

	(void)state;
	peer_init(&p, 1);
	assert_int_equal(link_connect(shm_addr, 100, &peer_events, &p, &p.link, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nobody listens there"));
	assert_int_equal(link_connect("tcp:127.0.0.1:1", 1000, &peer_events, &p, &p.link, &err),
			 -ECONNREFUSED);
	assert_non_null(strstr(err.text, "tcp:127.0.0.1:1"));
	assert_null(p.link);
}

/* A listener that never accepts: connecting ends in time, with a sentence. */
static void a_deaf_listener_is_a_timeout(void **state)
{
	struct listener *l;
	struct peer p;
	struct err err;

	(void)state;
	peer_init(&p, 1);
	assert_int_equal(listener_open(shm_addr, &l, &err), 0);
	assert_int_equal(link_connect(shm_addr, 50, &peer_events, &p, &p.link, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "accepts nobody"));
	assert_null(p.link);
	listener_free(l);
}

static void addresses_are_strict(void **state)
{
	static const char too_long[] =
		"shm:/0123456789012345678901234567890123456789012345678901234"
		"5678901234567890123456789012345678901234567890123456789";
	static const char *const bad[] = {
		too_long,      "",
		"shm:",        "tcp:",
		"tcp:host",    "tcp::80",
		"tcp:host:",   "tcp:host:x",
		"tcp:host:-1", "tcp:host:65536",
		"tcp:1::2:80", "/path",
		"rdma:x",      "tcp:host:80 ",
		"tcp:[]:80",   "tcp:host:00000000000080",
	};
	struct listener *l = NULL;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = listener_open(bad[i], &l, &err);

		assert_true(r == -EINVAL || r == -ENAMETOOLONG);
		assert_true(strlen(err.text) > 20);
	}
	assert_null(l);
}

/* An abstract name makes no file, and is free again at once. */
static void abstract_names_work(void **state)
{
	char addr[64];
	int i;

	(void)state;
	snprintf(addr, sizeof(addr), "shm:@nbox-test-%d", (int)getpid());
	for (i = 0; i < 2; i++) {
		struct listener *l = NULL, *second = NULL;
		struct link *a = NULL;
		struct err err;

		assert_int_equal(listener_open(addr, &l, &err), 0);
		assert_string_equal(listener_addr(l), addr);
		assert_int_equal(listener_open(addr, &second, &err), -EADDRINUSE);
		assert_null(second);
		/* a listener that does not accept is still there */
		assert_int_equal(link_connect(addr, 50, &peer_events, NULL, &a, &err), -ETIMEDOUT);
		listener_free(l);
		assert_int_equal(link_connect(addr, 50, &peer_events, NULL, &a, &err),
				 -ECONNREFUSED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shm_converses_polling),
		cmocka_unit_test(shm_converses_sleeping),
		cmocka_unit_test(shm_converses_with_holds),
		cmocka_unit_test(tcp_converses_sleeping),
		cmocka_unit_test(tcp_converses_with_holds),
		cmocka_unit_test(tcp_over_ipv6),
		cmocka_unit_test(bodies_longer_than_the_link_arrive),
		cmocka_unit_test(a_live_listener_is_refused),
		cmocka_unit_test(a_dead_socket_is_replaced),
		cmocka_unit_test(what_is_not_a_socket_stays),
		cmocka_unit_test(only_its_own_socket_is_removed),
		cmocka_unit_test(nobody_there_is_a_sentence),
		cmocka_unit_test(a_deaf_listener_is_a_timeout),
		cmocka_unit_test(addresses_are_strict),
		cmocka_unit_test(abstract_names_work),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
