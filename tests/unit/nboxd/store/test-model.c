/* Random requests of several clients, in random pieces, against a slow obvious model: an
 * array of keys, an array of queues, a list of waits. Every reply must be the same. */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-all.h"
#include "rng.h"
#include "talk.h"

#define CLIENTS 5
#define KEYS 6
#define VALUE_MAX 64
#define QUEUE_MAX 64

struct model_key {
	bool is_there;
	char value[4096];
	char queue[QUEUE_MAX][VALUE_MAX];
	unsigned n_queue;
};
struct model_wait {
	bool is_open;
	unsigned n_left[KEYS]; /* how often a key is still asked for */
	uint64_t order;
};
static struct model_key keys[KEYS];
static struct model_wait waits[CLIENTS];
static struct buffer expected[CLIENTS];
static uint64_t n_waits;
static struct talker talkers[CLIENTS];
static struct rng rng;

static unsigned draw(unsigned below)
{
	return (unsigned)(rng_u64(&rng) % below);
}

static void say(unsigned client, const void *p, size_t n)
{
	assert_int_equal(buffer_add(&expected[client], p, n), 0);
}

static void say_value(unsigned client, const char *text)
{
	uint64_t n = strlen(text);

	say(client, &n, 8);
	say(client, text, n);
}

static bool wait_is_met(const struct model_wait *w)
{
	for (unsigned k = 0; k < KEYS; k++)
		if (w->n_left[k])
			return false;
	return true;
}

static void meet(unsigned client, unsigned key, unsigned times)
{
	struct model_wait *w = &waits[client];

	w->n_left[key] -= times < w->n_left[key] ? times : w->n_left[key];
	if (wait_is_met(w)) {
		w->is_open = false;
		say(client, "\0", 1);
	}
}

static void wake_all(unsigned key)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (waits[i].is_open && waits[i].n_left[key])
			meet(i, key, UINT32_MAX);
}

/* The one that has waited for longest. */
static void wake_one(unsigned key)
{
	unsigned first = CLIENTS;

	for (unsigned i = 0; i < CLIENTS; i++)
		if (waits[i].is_open && waits[i].n_left[key] &&
		    (first == CLIENTS || waits[i].order < waits[first].order))
			first = i;
	if (first < CLIENTS)
		meet(first, key, 1);
}

static void model_set(unsigned key, const char *value)
{
	keys[key].is_there = true;
	snprintf(keys[key].value, sizeof(keys[key].value), "%s", value);
	wake_all(key);
}

static bool is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoll(text, &end, 10);
	return end != text && errno == 0 && strlen(text) < 18;
}

static void model_wait(unsigned client, const unsigned *list, unsigned n)
{
	bool is_ready = true;

	for (unsigned i = 0; i < n; i++)
		is_ready = is_ready && (keys[list[i]].is_there || keys[list[i]].n_queue);
	if (is_ready) {
		say(client, "\0", 1);
		return;
	}
	waits[client] = (struct model_wait){.is_open = true, .order = n_waits++};
	for (unsigned i = 0; i < n; i++)
		waits[client].n_left[list[i]] += !keys[list[i]].is_there && !keys[list[i]].n_queue;
}

static const char *const names[KEYS] = {"a", "b", "", "dd", "/default_pg/0//cuda//0", "f"};

/* One random request, told to the model; the bytes. */
static struct buffer step(unsigned client)
{
	unsigned k = draw(KEYS), list[3] = {draw(KEYS), draw(KEYS), draw(KEYS)}, n = draw(4);
	char value[VALUE_MAX], other[VALUE_MAX];
	struct model_key *key = &keys[k];
	int64_t number, count = 0;

	snprintf(value, sizeof(value), draw(2) ? "%u" : "v%u", draw(5));
	snprintf(other, sizeof(other), "%u", draw(5));
	switch (draw(13)) {
	case 0:
		model_set(k, value);
		return request(STORE_SET, "kv", names[k], value);
	case 1:
		if (draw(2))
			snprintf(other, sizeof(other), "%.60s", key->is_there ? key->value : "");
		if (key->is_there ? strcmp(key->value, other) == 0 : !other[0]) {
			model_set(k, value);
			say_value(client, value);
		} else {
			say_value(client, key->is_there ? key->value : other);
		}
		return request(STORE_COMPARE_SET, "kvv", names[k], other, value);
	case 2:
		say_value(client, key->is_there ? key->value : "");
		return request(STORE_GET, "k", names[k]);
	case 3:
		if (key->is_there && !is_number(key->value))
			return draw(2) ? request(STORE_CANCEL_WAIT, "")
				       : request(STORE_PING, "u", (uint32_t)draw(1000));
		number = (key->is_there ? strtoll(key->value, NULL, 10) : 0) + 3;
		say(client, &number, 8);
		snprintf(value, sizeof(value), "%lld", (long long)number);
		model_set(k, value);
		return request(STORE_ADD, "ki", names[k], INT64_C(3));
	case 4:
		for (unsigned i = 0; i < KEYS; i++)
			count += keys[i].is_there;
		say(client, &count, 8);
		return request(STORE_GETNUMKEYS, "");
	case 5:
		count = key->is_there;
		key->is_there = false;
		key->value[0] = '\0';
		say(client, &count, 8);
		return request(STORE_DELETE_KEY, "k", names[k]);
	case 6:
		if (strlen(key->value) > 4000)
			model_set(k, "");
		strcat(key->value, value);
		key->is_there = true;
		wake_all(k);
		return request(STORE_APPEND, "kv", names[k], value);
	case 7:
		for (unsigned i = 0; i < 3; i++)
			say_value(client, keys[list[i]].is_there ? keys[list[i]].value : "");
		return request(STORE_MULTI_GET, "nkkk", UINT64_C(3), names[list[0]], names[list[1]],
			       names[list[2]]);
	case 8:
		if (key->n_queue == QUEUE_MAX)
			return request(STORE_MULTI_SET, "n", UINT64_C(0));
		strcpy(key->queue[key->n_queue++], value);
		wake_one(k);
		return request(STORE_QUEUE_PUSH, "kv", names[k], value);
	case 9:
		count = key->n_queue;
		say(client, &count, 8);
		if (count) {
			say_value(client, key->queue[0]);
			memmove(key->queue[0], key->queue[1], sizeof(key->queue) - VALUE_MAX);
			key->n_queue--;
		}
		return request(STORE_QUEUE_POP, "k", names[k]);
	case 10:
	case 11:
		model_wait(client, list, n < 3 ? n : 3);
		return n == 0   ? request(STORE_WAIT, "n", UINT64_C(0))
		       : n == 1 ? request(STORE_WAIT, "nk", UINT64_C(1), names[list[0]])
		       : n == 2 ? request(STORE_WAIT, "nkk", UINT64_C(2), names[list[0]],
					  names[list[1]])
				: request(STORE_WAIT, "nkkk", UINT64_C(3), names[list[0]],
					  names[list[1]], names[list[2]]);
	default:
		model_set(list[0], "x");
		model_set(list[1], value);
		return request(STORE_MULTI_SET, "nkvkv", UINT64_C(2), names[list[0]], "x",
			       names[list[1]], value);
	}
}

/* What step() left to be told after its request is known. */
static void tell_rest(unsigned client, const struct buffer *r)
{
	const uint8_t *p = r->data;

	if (p[0] == STORE_CANCEL_WAIT) {
		waits[client].is_open = false;
		say(client, "\1", 1);
	} else if (p[0] == STORE_PING) {
		say(client, p + 1, 4);
	}
}

static void feed_in_pieces(unsigned client, struct buffer r)
{
	for (size_t n, fed = 0; fed < r.n; fed += n) {
		n = 1 + draw((unsigned)(r.n - fed));
		assert_int_equal(talk_bytes(&talkers[client], r.data + fed, n), 0);
	}
	buffer_deinit(&r);
}

static void the_store_does_what_a_slow_model_does(void **state)
{
	struct store *store;

	(void)state;
	rng_seed(&rng, 20261121, 0);
	assert_int_equal(store_new(&talk_events, NULL, &store), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		talker_open(&talkers[i], store, true);
	for (unsigned n = 0; n < 200000; n++) {
		unsigned client = draw(CLIENTS);
		struct buffer r;

		/* now and then one goes in the middle of what it does */
		if (draw(500) == 0) {
			talker_close(&talkers[client]);
			talker_open(&talkers[client], store, true);
			waits[client].is_open = false;
		}
		r = step(client);
		tell_rest(client, &r);
		feed_in_pieces(client, r);
		for (unsigned i = 0; i < CLIENTS; i++) {
			assert_int_equal(waits[i].is_open, talkers[i].is_waiting);
			if (!heard(&talkers[i], expected[i].data, expected[i].n))
				fail_msg("client %u heard something else after request %u", i, n);
			buffer_deinit(&expected[i]);
		}
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		talker_close(&talkers[i]);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_store_does_what_a_slow_model_does)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
