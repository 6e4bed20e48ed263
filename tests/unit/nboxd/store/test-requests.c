/* What a client is answered: each operation, waits and their ends, queues, barriers,
 * virtual check-ins, piled-up replies, limits. */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-all.h"
#include "nboxd/store/client.h"
#include "talk.h"

static struct store *store;
static struct talker a, b, c;

static int setup(void **state)
{
	(void)state;
	if (store_new(&talk_events, NULL, &store) < 0)
		return -1;
	talker_open(&a, store, true);
	talker_open(&b, store, true);
	talker_open(&c, store, true);
	return 0;
}

static int teardown(void **state)
{
	struct store_counts n;

	(void)state;
	talker_close(&a);
	talker_close(&b);
	talker_close(&c);
	store_clear(store);
	n = store_counts(store);
	/* nothing is left of keys, values, waiters */
	if (n.n_keys || n.n_bytes || n.n_clients || n.n_client_bytes || n.n_waits)
		return -1;
	store = store_free(store);
	return 0;
}

static void values_are_kept_as_they_were_set(void **state)
{
	(void)state;
	assert_int_equal(talk(&a, request(STORE_GET, "k", "x")), 0);
	assert_true(heard_value(&a, ""));
	assert_int_equal(talk(&a, request(STORE_SET, "kv", "x", "one")), 0);
	assert_true(heard_nothing(&a));
	assert_int_equal(talk(&b, request(STORE_GET, "k", "x")), 0);
	assert_true(heard_value(&b, "one"));
	assert_int_equal(talk(&b, request(STORE_APPEND, "kv", "x", "two")), 0);
	assert_int_equal(talk(&b, request(STORE_APPEND, "kv", "new", "n")), 0);
	assert_int_equal(talk(&a, request(STORE_MULTI_GET, "nkkk", UINT64_C(3), "x", "-", "new")),
			 0);
	assert_true(heard(&a, "\6\0\0\0\0\0\0\0onetwo\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0n", 31));
	assert_int_equal(talk(&a,
			      request(STORE_MULTI_SET, "nkvkv", UINT64_C(2), "x", "", "y", "why")),
			 0);
	assert_int_equal(talk(&a, request(STORE_GETNUMKEYS, "")), 0);
	assert_true(heard_i64(&a, 3));
	assert_int_equal(talk(&a, request(STORE_GET, "k", "y")), 0);
	assert_true(heard_value(&a, "why"));
	assert_int_equal(talk(&a, request(STORE_DELETE_KEY, "k", "y")), 0);
	assert_true(heard_i64(&a, 1));
	assert_int_equal(talk(&a, request(STORE_DELETE_KEY, "k", "y")), 0);
	assert_true(heard_i64(&a, 0));
	assert_int_equal(talk(&a, request(STORE_CHECK, "nkk", UINT64_C(2), "x", "new")), 0);
	assert_true(heard_u8(&a, 0));
	assert_int_equal(talk(&a, request(STORE_CHECK, "nkk", UINT64_C(2), "x", "y")), 0);
	assert_true(heard_u8(&a, 1));
	assert_int_equal(talk(&a, request(STORE_PING, "u", (uint32_t)4711)), 0);
	assert_true(heard(&a, &(uint32_t){4711}, 4));
	assert_int_equal(a.pid, 4711);
	assert_int_equal(talk(&a, request(STORE_DELETE_KEY, "k", "new")), 0);
	assert_true(heard_i64(&a, 1));
	assert_int_equal(talk(&a, request(STORE_LIST_KEYS, "")), 0);
	assert_true(heard(&a, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0x", 17));
}

static void compare_set_sets_what_is_as_expected(void **state)
{
	static const struct {
		const char *expected, *desired, *answer, *then;
	} steps[] = {
		{"old", "new", "old", ""}, /* missing: what was expected, and nothing is set */
		{"", "first", "first", "first"},
		{"", "second", "first", "first"},
		{"first", "second", "second", "second"},
		{"firs", "third", "second", "second"},
		{"second", "", "", ""},
		{"", "again", "again", "again"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		assert_int_equal(talk(&a, request(STORE_COMPARE_SET, "kvv", "k", steps[i].expected,
						  steps[i].desired)),
				 0);
		assert_true(heard_value(&a, steps[i].answer));
		assert_int_equal(talk(&a, request(STORE_GET, "k", "k")), 0);
		assert_true(heard_value(&a, steps[i].then));
	}
}

static void add_counts_in_decimals(void **state)
{
	(void)state;
	assert_int_equal(talk(&a, request(STORE_ADD, "ki", "n", INT64_C(5))), 0);
	assert_true(heard_i64(&a, 5));
	assert_int_equal(talk(&b, request(STORE_ADD, "ki", "n", INT64_C(-7))), 0);
	assert_true(heard_i64(&b, -2));
	assert_int_equal(talk(&b, request(STORE_GET, "k", "n")), 0);
	assert_true(heard_value(&b, "-2"));
	assert_int_equal(talk(&b, request(STORE_ADD, "ki", "n", INT64_MIN)), -EPROTO);
	assert_int_equal(talk(&a, request(STORE_SET, "kv", "n", "word")), 0);
	assert_int_equal(talk(&a, request(STORE_ADD, "ki", "n", INT64_C(1))), -EPROTO);
	assert_non_null(strstr(a.err.text, "no number"));
	/* the sentence goes into a log: one line, whatever the key */
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "k\n\x1b[2J\x80", "word")), 0);
	assert_int_equal(talk(&c, request(STORE_ADD, "ki", "k\n\x1b[2J\x80", INT64_C(1))), -EPROTO);
	assert_non_null(strstr(c.err.text, "no number: k??[2J?"));
}

static void a_wait_ends_with_its_last_key(void **state)
{
	(void)state;
	assert_int_equal(talk(&a, request(STORE_WAIT, "nkkk", UINT64_C(3), "x", "y", "x")), 0);
	assert_true(a.is_waiting);
	assert_int_equal(store_client_n_awaited(a.client), 3);
	assert_true(store_client_awaited(a.client, 1).p[0] == 'y');
	assert_int_equal(talk(&b, request(STORE_WAIT, "nk", UINT64_C(1), "x")), 0);
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "x", "")), 0);
	assert_true(heard_u8(&b, 0));
	assert_true(heard_nothing(&a));
	assert_int_equal(store_client_n_awaited(a.client), 1);
	/* gone before the other came: it was there, that counts */
	assert_int_equal(talk(&c, request(STORE_DELETE_KEY, "k", "x")), 0);
	assert_true(heard_i64(&c, 1));
	assert_int_equal(talk(&c, request(STORE_ADD, "ki", "y", INT64_C(0))), 0);
	assert_true(heard_i64(&c, 0));
	assert_true(heard_u8(&a, 0));
	assert_false(a.is_waiting);
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "y")), 0);
	assert_true(heard_u8(&a, 0));
	assert_int_equal(talk(&a, request(STORE_WAIT, "n", UINT64_C(0))), 0);
	assert_true(heard_u8(&a, 0));
	/* cancelled; what comes then is no answer any more */
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "z")), 0);
	assert_int_equal(talk(&a, request(STORE_CANCEL_WAIT, "")), 0);
	assert_true(heard_u8(&a, 1));
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "z", "")), 0);
	assert_true(heard_nothing(&a));
	/* cancelled too late: both answers, in this order */
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "late")), 0);
	assert_int_equal(talk(&c, request(STORE_COMPARE_SET, "kvv", "late", "", "1")), 0);
	assert_true(heard_value(&c, "1"));
	assert_int_equal(talk(&a, request(STORE_CANCEL_WAIT, "")), 0);
	assert_true(heard(&a, "\0\1", 2));
	/* a second WAIT takes the place of the first */
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "p")), 0);
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "q")), 0);
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "p", "")), 0);
	assert_true(heard_nothing(&a));
	assert_int_equal(talk(&c, request(STORE_APPEND, "kv", "q", "")), 0);
	assert_true(heard_u8(&a, 0));
	/* who goes while waiting leaves nothing */
	assert_int_equal(talk(&b, request(STORE_WAIT, "nkk", UINT64_C(2), "g", "h")), 0);
	assert_int_equal(store_counts(store).n_waits, 1);
	talker_close(&b);
	assert_int_equal(store_counts(store).n_waits, 0);
	talker_open(&b, store, true);
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "g", "")), 0);
}

static void a_queue_gives_back_in_order(void **state)
{
	(void)state;
	assert_int_equal(talk(&a, request(STORE_QUEUE_POP, "k", "q")), 0);
	assert_true(heard_i64(&a, 0));
	assert_int_equal(talk(&a, request(STORE_WAIT, "nk", UINT64_C(1), "q")), 0);
	assert_int_equal(talk(&b, request(STORE_WAIT, "nk", UINT64_C(1), "q")), 0);
	assert_int_equal(talk(&c, request(STORE_QUEUE_PUSH, "kv", "q", "1")), 0);
	assert_true(heard_u8(&a, 0)); /* one value wakes one */
	assert_true(heard_nothing(&b));
	assert_int_equal(talk(&c, request(STORE_QUEUE_PUSH, "kv", "q", "22")), 0);
	assert_true(heard_u8(&b, 0));
	assert_int_equal(talk(&c, request(STORE_QUEUE_LEN, "k", "q")), 0);
	assert_true(heard_i64(&c, 2));
	assert_int_equal(talk(&c, request(STORE_CHECK, "nk", UINT64_C(1), "q")), 0);
	assert_true(heard_u8(&c, 0));
	assert_int_equal(talk(&c, request(STORE_GETNUMKEYS, "")), 0);
	assert_true(heard_i64(&c, 0)); /* queues are no keys */
	assert_int_equal(talk(&b, request(STORE_QUEUE_POP, "k", "q")), 0);
	assert_true(heard(&b, "\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0001", 17));
	assert_int_equal(talk(&a, request(STORE_QUEUE_POP, "k", "q")), 0);
	assert_true(heard(&a, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\00022", 18));
	assert_int_equal(talk(&a, request(STORE_QUEUE_LEN, "k", "q")), 0);
	assert_true(heard_i64(&a, 0));
}

static void a_barrier_ends_with_its_last_client(void **state)
{
	(void)state;
	assert_int_equal(talk(&a, request(STORE_BARRIER, "ki", "b", INT64_C(3))), 0);
	assert_int_equal(talk(&b, request(STORE_BARRIER, "ki", "b", INT64_C(3))), 0);
	assert_true(heard_nothing(&a) && heard_nothing(&b) && a.is_waiting);
	assert_int_equal(talk(&c, request(STORE_BARRIER, "ki", "b", INT64_C(3))), 0);
	assert_true(heard_u8(&a, 0) && heard_u8(&b, 0) && heard_u8(&c, 0));
	assert_int_equal(talk(&c, request(STORE_GET, "k", "b")), 0);
	assert_true(heard_value(&c, "3"));
	assert_int_equal(talk(&c, request(STORE_BARRIER, "ki", "alone", INT64_C(1))), 0);
	assert_true(heard_u8(&c, 0));
}

/* --- strangers and limits ------------------------------------------------------------ */

static void a_stranger_is_refused(void **state)
{
	struct talker t;

	(void)state;
	talker_open(&t, store, false);
	assert_int_equal(talk(&t, request(STORE_VALIDATE, "u", (uint32_t)1)), -EPROTO);
	talker_close(&t);
	/* refused by its first byte: nothing is kept of the rest */
	talker_open(&t, store, false);
	assert_int_equal(talk(&t, request(STORE_SET, "i", INT64_C(4000))), -EPROTO);
	assert_non_null(strstr(t.err.text, "SET before VALIDATE"));
	assert_false(store_client_is_valid(t.client));
	talker_close(&t);
	assert_int_equal(talk(&a, request(STORE_VALIDATE, "u", STORE_MAGIC)), -EPROTO);
}

/* Who asks and does not read is served up to a limit, and goes on where it stood. */
static void a_client_that_does_not_read_is_served_up_to_a_limit(void **state)
{
	CLEANUP(freep) char *value = malloc(100001);
	struct buffer all = {0};
	size_t total = 0, n_turns = 0;

	(void)state;
	assert_non_null(value);
	memset(value, 'v', 100000);
	value[100000] = '\0';
	assert_int_equal(talk(&a, request(STORE_SET, "kv", "big", value)), 0);
	for (int i = 0; i < 100; i++) {
		struct buffer one = request(STORE_GET, "k", "big");

		assert_int_equal(buffer_add(&all, one.data, one.n), 0);
		buffer_deinit(&one);
	}
	assert_int_equal(talk(&a, all), 0);
	assert_true(a.out.n >= STORE_OUTPUT_HIGH);
	while (a.out.n) {
		assert_true(a.out.n < STORE_OUTPUT_HIGH + 100008);
		total += a.out.n;
		a.out.n = 0;
		/* not before all is read */
		assert_int_equal(talk_bytes(&a, NULL, 0), 0);
		assert_int_equal(a.out.n, 0);
		store_client_set_unread(a.client, 0);
		assert_int_equal(talk_bytes(&a, NULL, 0), 0);
		n_turns++;
	}
	assert_int_equal(total, 100 * 100008);
	assert_true(n_turns >= 9);
}

static void a_full_store_refuses_more(void **state)
{
	CLEANUP(freep) char *value = malloc(STORE_VALUE_MAX + 1);
	int r = 0, n = 0;

	(void)state;
	assert_non_null(value);
	memset(value, 'v', STORE_VALUE_MAX);
	value[STORE_VALUE_MAX] = '\0';
	for (; r == 0 && n < 100; n++)
		r = talk(&a, request(STORE_APPEND, "kv", "grown", value));
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(n, STORE_GROWN_MAX / STORE_VALUE_MAX + 1);
	assert_true(store_counts(store).n_bytes <= STORE_GROWN_MAX + 1024);
}

/* Half a SET of a large value, and so much of it. Return: as store_client_feed(). */
static int half(struct talker *t, size_t n)
{
	CLEANUP(freep) char *bytes = calloc(1, n);
	struct buffer head = request(STORE_SET, "kn", "k", (uint64_t)STORE_VALUE_MAX);
	int r = talk(t, head);

	assert_non_null(bytes);
	return r < 0 ? r : talk_bytes(t, bytes, n);
}

/* Each may hold much, all together not so much: who wants more then is cut off, who is small goes
 * on. */
static void a_client_that_wants_more_than_all_may_hold_is_cut_off(void **state)
{
	CLEANUP(freep) char *value = malloc((300u << 10) + 1);
	struct talker t;

	(void)state;
	assert_non_null(value);
	memset(value, 'v', 300u << 10);
	value[300u << 10] = '\0';
	store->clients_max = 1u << 20;
	/* half requests */
	assert_int_equal(half(&a, 500u << 10), 0);
	assert_true(store_counts(store).n_client_bytes >= 500u << 10);
	assert_int_equal(half(&b, 600u << 10), -EDQUOT);
	assert_non_null(strstr(b.err.text, "all clients of the store together"));
	assert_int_equal(talk(&c, request(STORE_SET, "kv", "small", "one")), 0);
	talker_close(&a);
	assert_int_equal(half(&b, 1u), 0);
	talker_close(&b);
	/* replies that nobody reads */
	store->clients_max = 512u << 10;
	talker_open(&a, store, true);
	talker_open(&b, store, true);
	assert_int_equal(talk(&a, request(STORE_SET, "kv", "big", value)), 0);
	assert_int_equal(talk(&a, request(STORE_GET, "k", "big")), 0);
	assert_int_equal(talk(&b, request(STORE_GET, "k", "big")), -EDQUOT);
	assert_int_equal(talk(&c, request(STORE_GET, "k", "small")), 0);
	assert_true(heard_value(&c, "one"));
	assert_true(heard_value(&a, value));
	assert_int_equal(talk(&c, request(STORE_GET, "k", "big")), 0);
	assert_true(heard_value(&c, value));
	/* lists of awaited keys, all of one name */
	store->clients_max = 128u << 10;
	talker_open(&t, store, true);
	{
		struct buffer r = request(STORE_WAIT, "n", UINT64_C(5000)), one = {0};

		for (int i = 0; i < 5000; i++)
			assert_int_equal(buffer_add(&one, "\1\0\0\0\0\0\0\0x", 9), 0);
		assert_int_equal(buffer_add(&r, one.data, one.n), 0);
		buffer_deinit(&one);
		assert_int_equal(talk(&t, r), -EDQUOT);
		assert_false(t.is_waiting);
	}
	talker_close(&t);
}

/* What keeps keys and values counts: else a client that sends empty ones takes all memory. */
static void empty_keys_and_values_count(void **state)
{
	uint64_t before;
	char key[32];

	(void)state;
	assert_int_equal(talk(&a, request(STORE_QUEUE_PUSH, "kv", "q", "")), 0);
	before = store_counts(store).n_bytes;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(talk(&a, request(STORE_QUEUE_PUSH, "kv", "q", "")), 0);
	assert_true(store_counts(store).n_bytes >= before + 1000 * 2 * sizeof(void *));
	before = store_counts(store).n_bytes;
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(talk(&a, request(STORE_SET, "kv", key, "")), 0);
	}
	assert_true(store_counts(store).n_bytes >= before + 1000 * 64);
	before = store_counts(store).n_bytes;
	assert_int_equal(talk(&b, request(STORE_WAIT, "nkk", UINT64_C(2), "w1", "w2")), 0);
	assert_true(store_counts(store).n_bytes >= before + 2 * 64);
	assert_int_equal(talk(&a, request(STORE_QUEUE_POP, "k", "q")), 0);
	assert_true(heard(&a, "\351\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
}

/* --- virtual ranks --------------------------------------------------------------------- */

static struct store *inventive;
static char missing[256];
static unsigned n_set;

/* "inv..." keys exist as soon as somebody asks. */
static void on_missing(void *owner, void *client_owner, struct store_bytes key)
{
	(void)owner;
	(void)client_owner;
	snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%.*s,", (int)key.n,
		 (const char *)key.p);
	if (key.n >= 3 && memcmp(key.p, "inv", 3) == 0)
		assert_int_equal(store_set(inventive, key, TEXT("made")), 0);
}

static void on_set(void *owner, void *client_owner, struct store_bytes key,
		   struct store_bytes value)
{
	(void)owner;
	(void)client_owner;
	(void)key;
	n_set += value.n > 0;
}

static int64_t initial_count(void *owner, struct store_bytes key, int64_t world)
{
	(void)owner;
	return key.p[0] == 'v' ? 6 : world == 8 ? 7 : 0;
}

static void the_owner_is_asked_about_missing_keys(void **state)
{
	struct store_events ev = talk_events;
	struct talker t, u;

	(void)state;
	ev.on_missing = on_missing;
	ev.on_set = on_set;
	ev.initial_count = initial_count;
	assert_int_equal(store_new(&ev, NULL, &inventive), 0);
	talker_open(&t, inventive, true);
	talker_open(&u, inventive, true);
	assert_int_equal(talk(&t,
			      request(STORE_WAIT, "nkkk", UINT64_C(3), "inv1", "other", "inv2")),
			 0);
	assert_string_equal(missing, "inv1,other,inv2,");
	assert_int_equal(store_client_n_awaited(t.client), 1);
	assert_int_equal(store_set(inventive, TEXT("other"), TEXT("")), 0);
	assert_true(heard_u8(&t, 0));
	assert_int_equal(talk(&t, request(STORE_GET, "k", "inv3")), 0);
	assert_true(heard_value(&t, "made"));
	assert_int_equal(talk(&t, request(STORE_MULTI_GET, "nk", UINT64_C(1), "inv4")), 0);
	assert_true(heard_value(&t, "made"));
	assert_int_equal(n_set, 0);
	/* two real ranks of eight: the second one completes */
	assert_int_equal(talk(&t, request(STORE_ADD, "ki", "v", INT64_C(1))), 0);
	assert_true(heard_i64(&t, 7));
	assert_int_equal(talk(&u, request(STORE_ADD, "ki", "v", INT64_C(1))), 0);
	assert_true(heard_i64(&u, 8));
	assert_int_equal(n_set, 2);
	/* it has been deleted: it begins anew */
	assert_int_equal(talk(&u, request(STORE_BARRIER, "ki", "b", INT64_C(8))), 0);
	assert_true(heard_u8(&u, 0));
	talker_close(&t);
	talker_close(&u);
	inventive = store_free(inventive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_kept_as_they_were_set, setup, teardown),
		cmocka_unit_test_setup_teardown(compare_set_sets_what_is_as_expected, setup,
						teardown),
		cmocka_unit_test_setup_teardown(add_counts_in_decimals, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_ends_with_its_last_key, setup, teardown),
		cmocka_unit_test_setup_teardown(a_queue_gives_back_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_barrier_ends_with_its_last_client, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stranger_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_client_that_does_not_read_is_served_up_to_a_limit,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_store_refuses_more, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_client_that_wants_more_than_all_may_hold_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_keys_and_values_count, setup, teardown),
		cmocka_unit_test(the_owner_is_asked_about_missing_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
