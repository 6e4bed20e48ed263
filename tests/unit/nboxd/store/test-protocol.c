/* Requests as bytes: every shape, cut at every byte; limits; garbage. */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-all.h"
#include "talk.h"

struct shape {
	enum store_op op;
	uint8_t number; /* on the wire, as torch's clients count them */
	struct buffer (*make)(void);
};

#define MAKE(name, ...)                      \
	static struct buffer name(void)      \
	{                                    \
		return request(__VA_ARGS__); \
	}
MAKE(validate, STORE_VALIDATE, "u", STORE_MAGIC)
MAKE(set, STORE_SET, "kv", "key", "value")
MAKE(set_empty, STORE_SET, "kv", "", "")
MAKE(compare_set, STORE_COMPARE_SET, "kvv", "key", "", "new")
MAKE(get, STORE_GET, "k", "key")
MAKE(add, STORE_ADD, "ki", "key", INT64_C(-1))
MAKE(check, STORE_CHECK, "nkk", UINT64_C(2), "a", "bcd")
MAKE(wait, STORE_WAIT, "nkkk", UINT64_C(3), "a", "", "c")
MAKE(wait_none, STORE_WAIT, "n", UINT64_C(0))
MAKE(getnumkeys, STORE_GETNUMKEYS, "")
MAKE(delete_key, STORE_DELETE_KEY, "k", "key")
MAKE(append, STORE_APPEND, "kv", "key", "more")
MAKE(multi_get, STORE_MULTI_GET, "nk", UINT64_C(1), "a")
MAKE(multi_set, STORE_MULTI_SET, "nkvkv", UINT64_C(2), "a", "1", "b", "")
MAKE(cancel_wait, STORE_CANCEL_WAIT, "")
MAKE(ping, STORE_PING, "u", (uint32_t)42)
MAKE(queue_push, STORE_QUEUE_PUSH, "kv", "q", "1")
MAKE(queue_pop, STORE_QUEUE_POP, "k", "q")
MAKE(queue_len, STORE_QUEUE_LEN, "k", "q")
MAKE(list_keys, STORE_LIST_KEYS, "")
MAKE(barrier, STORE_BARRIER, "ki", "b", INT64_C(8))

static const struct shape shapes[] = {
	{STORE_VALIDATE, 0, validate},
	{STORE_SET, 1, set},
	{STORE_SET, 1, set_empty},
	{STORE_COMPARE_SET, 2, compare_set},
	{STORE_GET, 3, get},
	{STORE_ADD, 4, add},
	{STORE_CHECK, 5, check},
	{STORE_WAIT, 6, wait},
	{STORE_WAIT, 6, wait_none},
	{STORE_GETNUMKEYS, 7, getnumkeys},
	{STORE_DELETE_KEY, 8, delete_key},
	{STORE_APPEND, 9, append},
	{STORE_MULTI_GET, 10, multi_get},
	{STORE_MULTI_SET, 11, multi_set},
	{STORE_CANCEL_WAIT, 12, cancel_wait},
	{STORE_PING, 13, ping},
	{STORE_QUEUE_PUSH, 14, queue_push},
	{STORE_QUEUE_POP, 15, queue_pop},
	{STORE_QUEUE_LEN, 16, queue_len},
	{STORE_LIST_KEYS, 17, list_keys},
	{STORE_BARRIER, 18, barrier},
};

/* Fed byte by byte, each request is complete with its last byte and not before; with
 * another behind it, its size is the same. */
static void a_request_is_whole_with_its_last_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct buffer b = shapes[i].make();
		struct store_scan s = {0}, whole = {0};
		size_t n = b.n;

		assert_int_equal(b.data[0], shapes[i].number);
		for (size_t k = 0; k < n; k++) {
			/* an exact copy: a sanitizer sees what is read too far */
			CLEANUP(freep) uint8_t *copy = malloc(k ? k : 1);

			assert_non_null(copy);
			memcpy(copy, b.data, k);
			assert_int_equal(store_scan(&s, copy, k, NULL), 0);
		}
		assert_int_equal(store_scan(&s, b.data, n, NULL), STORE_COMPLETE);
		assert_int_equal(s.pos, n);
		assert_int_equal(s.op, shapes[i].op);
		assert_int_equal(buffer_add(&b, "\3\1\0\0\0\0\0\0\0x", 10), 0);
		assert_int_equal(store_scan(&whole, b.data, b.n, NULL), STORE_COMPLETE);
		assert_int_equal(whole.pos, n);
		buffer_deinit(&b);
	}
}

static void refused(struct buffer b, const char *word)
{
	struct store_scan s = {0};
	struct err err = {""};

	assert_int_equal(store_scan(&s, b.data, b.n, &err), -EPROTO);
	if (!strstr(err.text, word))
		fail_msg("'%s' lacks '%s'", err.text, word);
	buffer_deinit(&b);
}

/* Lengths are refused when they are seen, before their bytes have come. */
static void a_length_is_refused_before_its_bytes_come(void **state)
{
	struct buffer b = {0};
	struct store_scan s = {0};

	(void)state;
	refused(request(STORE_GET, "i", (int64_t)STORE_KEY_MAX + 1), "key of 8193 bytes");
	refused(request(STORE_GET, "i", INT64_C(-1)), "key of");
	refused(request(STORE_SET, "ki", "k", (int64_t)STORE_VALUE_MAX + 1),
		"value of 8388609 bytes");
	refused(request(STORE_SET, "ki", "k", INT64_C(-1)), "value of");
	refused(request(STORE_WAIT, "n", (uint64_t)STORE_KEYS_MAX + 1), "131073 keys");
	refused(request(STORE_MULTI_SET, "n", UINT64_MAX), "keys");
	refused(request((enum store_op)STORE_OPS, ""), "byte 19 is no operation");
	refused(request((enum store_op)'G', "k", "ET / HTTP"), "byte 71 is no operation");

	b = request(STORE_GET, "i", (int64_t)STORE_KEY_MAX);
	assert_int_equal(store_scan(&s, b.data, b.n, NULL), 0);
	buffer_deinit(&b);
}

/* Values of the greatest size, until the request is too large as a whole. */
static void a_request_has_a_greatest_size(void **state)
{
	struct buffer b = request(STORE_MULTI_SET, "n", UINT64_C(9));
	CLEANUP(freep) char *value = calloc(1, STORE_VALUE_MAX);
	struct store_scan s = {0};
	struct err err = {""};
	uint64_t n = STORE_VALUE_MAX, zero = 0;
	int r = 0;

	(void)state;
	assert_non_null(value);
	for (int i = 0; i < 9 && r == 0; i++) {
		assert_int_equal(buffer_add(&b, &zero, 8), 0);
		assert_int_equal(buffer_add(&b, &n, 8), 0);
		r = store_scan(&s, b.data, b.n, &err);
		assert_int_equal(r, i == 7 ? -EPROTO : 0);
		if (r == 0)
			assert_int_equal(buffer_add(&b, value, n), 0);
	}
	assert_non_null(strstr(err.text, "MULTI_SET of more than"));
	buffer_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_whole_with_its_last_byte),
		cmocka_unit_test(a_length_is_refused_before_its_bytes_come),
		cmocka_unit_test(a_request_has_a_greatest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
