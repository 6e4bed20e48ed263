/* Gloo's virtual ranks, which nboxd plays at ports of their own: barriers and broadcasts, and who
 * means ill. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nboxd/store/gloo/gloo.h"
#include "store-client.h"

static struct daemon d;

/* A real rank of a gloo group, as gloo does: its address in the store, then connections to
 * virtual ranks, on which it first says who it is. */
static void set_address(int store, const char *key, uint16_t port)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	uint64_t n_key = strlen(key), n_value;
	uint8_t op = STORE_SET;
	struct buffer address, r = {0};

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(gloo_address_write(&a, 0, 0, &address), 0);
	n_value = address.n;
	assert_int_equal(buffer_add(&r, &op, 1) | buffer_add(&r, &n_key, 8) |
				 buffer_add(&r, key, n_key) | buffer_add(&r, &n_value, 8) |
				 buffer_add(&r, address.data, address.n),
			 0);
	buffer_deinit(&address);
	store_put(store, r);
}

static int dial_silent(int store, uint32_t rank)
{
	struct gloo_address a;
	uint8_t value[512];
	char key[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(key, sizeof(key), "/default_pg/0//cpu//0/%u", rank);
	store_put(store, request(STORE_WAIT, "nk", UINT64_C(1), key));
	assert_int_equal(store_take_u8(store), 0);
	store_put(store, request(STORE_GET, "k", key));
	assert_int_equal(gloo_address_parse((struct store_bytes){value,
								 store_take_value(store, value,
										  sizeof(value))},
					    &a),
			 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a.sockaddr, sizeof(struct sockaddr_in)),
			 0);
	return fd;
}

static int dial_virtual(int store, uint32_t rank, int64_t me)
{
	int fd = dial_silent(store, rank);

	assert_int_equal(send(fd, &me, sizeof(me), MSG_NOSIGNAL), sizeof(me));
	return fd;
}

static void put_frame(int fd, enum gloo_opcode opcode, uint64_t slot, const char *body)
{
	struct gloo_frame f = {.opcode = opcode, .slot = slot, .length = strlen(body)};

	f.n_bytes = sizeof(f) + (opcode == GLOO_DATA ? f.length : 0);
	assert_int_equal(send(fd, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
	if (opcode == GLOO_DATA)
		assert_int_equal(send(fd, body, f.length, MSG_NOSIGNAL), f.length);
}

static void take_frame(int fd, enum gloo_opcode opcode, uint64_t slot, const char *body)
{
	char got[64];
	struct gloo_frame f;

	store_take(fd, &f, sizeof(f));
	assert_int_equal(f.opcode, opcode);
	assert_int_equal(f.slot, slot);
	assert_int_equal(f.length, strlen(body));
	if (opcode != GLOO_DATA)
		return;
	store_take(fd, got, f.length);
	assert_memory_equal(got, body, f.length);
}

/* World of 8, ranks 2 and 3 are real. */
static void virtual_ranks_take_part_in_gloos_calls(void **state)
{
	const uint64_t barrier = UINT64_C(7) << 56 | 5, broadcast = UINT64_C(6) << 56,
		       reduce = UINT64_C(4) << 56;
	int a, b, from_1, from_6, to_4, from_0;
	struct fake f = {0};

	(void)state;
	nboxd_start(&d, "2,3");
	a = store_client(&d);
	b = store_client(&d);
	set_address(a, "/default_pg/0//cpu//0/2", 65000);
	set_address(b, "/default_pg/0//cpu//0/3", 65001);
	from_1 = dial_virtual(a, 1, 2);
	from_6 = dial_virtual(a, 6, 2);
	to_4 = dial_virtual(b, 4, 3);
	/* rank 1 would send at once; 6 only when it has heard, through 4, of 3 */
	put_frame(from_1, GLOO_RECV_READY, barrier, "");
	take_frame(from_1, GLOO_SEND_READY, barrier, "");
	take_frame(from_1, GLOO_DATA, barrier, "");
	put_frame(from_6, GLOO_RECV_READY, barrier, "");
	assert_false(is_readable(from_6, 100));
	fake_connect(&f, d.addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1));
	assert_non_null(strstr(f.status, "in a barrier for rank 6, which is virtual"));
	fake_close(&f);
	put_frame(to_4, GLOO_SEND_READY, barrier, "");
	take_frame(to_4, GLOO_RECV_READY, barrier, "");
	assert_false(is_readable(from_6, 100));
	put_frame(to_4, GLOO_DATA, barrier, "");
	take_frame(from_6, GLOO_SEND_READY, barrier, "");
	take_frame(from_6, GLOO_DATA, barrier, "");
	/* what 3 sends to 4 is what 2 gets from 0 */
	from_0 = dial_virtual(a, 0, 2);
	put_frame(from_0, GLOO_RECV_READY, broadcast, "words");
	assert_false(is_readable(from_0, 100));
	put_frame(to_4, GLOO_SEND_READY, broadcast, "words");
	take_frame(to_4, GLOO_RECV_READY, broadcast, "words");
	put_frame(to_4, GLOO_DATA, broadcast, "words");
	take_frame(from_0, GLOO_SEND_READY, broadcast, "words");
	take_frame(from_0, GLOO_DATA, broadcast, "words");
	/* values of virtual ranks there are none; others are not touched */
	put_frame(from_1, GLOO_SEND_READY, reduce, "sum");
	assert_true(is_hung_up(from_1));
	daemon_will_say(
		&d,
		"rank 2 of the default gloo group calls all_reduce with rank 1, which is virtual");
	put_frame(to_4, GLOO_BOUND_DATA, barrier, "");
	assert_true(is_hung_up(to_4));
	daemon_will_say(&d, "not gloo as far as nboxd knows it");
	put_frame(from_6, GLOO_SEND_READY, barrier, "");
	take_frame(from_6, GLOO_RECV_READY, barrier, "");
	/* a barrier of bytes would be answered with bytes that nobody gave */
	put_frame(from_6, GLOO_RECV_READY, UINT64_C(7) << 56 | 7, "bytes");
	assert_true(is_hung_up(from_6));
	close(from_0);
	close(from_1);
	close(from_6);
	close(to_4);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* Who means ill at a port of gloo's, which may be open beyond loopback: says nothing, sends what a
 * barrier has only once, reads nothing. It is cut off, and what it sends does not pile up. */
static void a_hostile_gloo_peer_is_cut_off(void **state)
{
	const uint64_t barrier = UINT64_C(7) << 56 | 1;
	static struct gloo_frame many[4096];
	uint64_t sent = 0, until;
	int a, fd, silent;
	ssize_t n = 0;

	(void)state;
	nboxd_start(&d, "2,3");
	a = store_client(&d);
	set_address(a, "/default_pg/0//cpu//0/2", 65000);
	set_address(a, "/default_pg/0//cpu//0/3", 65001);
	silent = dial_silent(a, 5);
	fd = dial_virtual(a, 6, 2); /* 6 waits for 3, which never comes */
	put_frame(fd, GLOO_RECV_READY, barrier, "");
	put_frame(fd, GLOO_RECV_READY, barrier, "");
	assert_true(is_cut_off(fd));
	close(fd);
	fd = dial_virtual(a, 4, 2);
	put_frame(fd, GLOO_DATA, barrier, "");
	put_frame(fd, GLOO_DATA, barrier, "");
	assert_true(is_cut_off(fd));
	close(fd);
	assert_true(is_hung_up(silent)); /* after 5 s */
	close(silent);
	/* each frame is answered by one of the same size */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct gloo_frame){.n_bytes = sizeof(many[0]),
					      .opcode = GLOO_SEND_READY,
					      .slot = barrier};
	fd = dial_virtual(a, 7, 2);
	until = clock_now_ns() + 120 * NS_PER_S;
	while (n >= 0 && clock_now_ns() < until && sent < UINT64_C(1) << 30) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		size_t from = sent % sizeof(many[0]);

		poll(&p, 1, 100);
		n = send(fd, (char *)many + from, sizeof(many) - from, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			n = 0;
		sent += (uint64_t)n * (n > 0);
	}
	assert_true(n < 0);
	close(fd);
	close(a);
	daemon_stop(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtual_ranks_take_part_in_gloos_calls),
		cmocka_unit_test(a_hostile_gloo_peer_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
