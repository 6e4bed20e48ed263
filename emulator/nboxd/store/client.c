/* See client.h. */
#include "nboxd/store/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

int store_client_new(struct store *s, void *client_owner, struct store_client **ret)
{
	struct store_client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->store = s;
	c->owner = client_owner;
	s->n_clients++;
	*ret = c;
	return 0;
}

struct store_client *store_client_free(struct store_client *c)
{
	if (!c)
		return NULL;
	wait_end(c);
	c->store->n_client_bytes -= c->n_held;
	c->store->n_clients--;
	free(c);
	return NULL;
}

bool store_client_is_valid(const struct store_client *c)
{
	return c->is_valid;
}

void store_client_set_unread(struct store_client *c, size_t n)
{
	c->n_unread = n;
	client_count(c);
}

/* --- answers ------------------------------------------------------------------------ */

static int answer(struct store_client *c, const void *bytes, size_t n)
{
	int r = client_has_room(c, n);

	if (r == 0)
		client_send(c, bytes, n);
	return r;
}

static int answer_u8(struct store_client *c, uint8_t v)
{
	return answer(c, &v, sizeof(v));
}

static int answer_i64(struct store_client *c, int64_t v)
{
	return answer(c, &v, sizeof(v));
}

static int answer_bytes(struct store_client *c, struct store_bytes b)
{
	uint64_t n = b.n;
	int r = answer(c, &n, sizeof(n));

	return r < 0 ? r : answer(c, b.p, b.n);
}

static int answer_value(struct store_client *c, struct store_bytes key)
{
	struct store_bytes value = {NULL, 0};

	store_get(c->store, key, &value);
	return answer_bytes(c, value);
}

/* --- the operations ------------------------------------------------------------------ */

static void tell_missing(struct store_client *c, struct store_bytes key)
{
	const struct store_events *ev = c->store->ev;

	if (ev->on_missing && !entry_is_there(entry_find(c->store, key)))
		ev->on_missing(c->store->owner, c->owner, key);
}

/* The last that is done with @e. Return: 0. */
static int tell_set(struct store_client *c, const struct entry *e)
{
	struct store_bytes value = {e->value.data, e->value.n};

	if (c->store->ev->on_set)
		c->store->ev->on_set(c->store->owner, c->owner,
				     (struct store_bytes){e->key, e->n_key}, value);
	return 0;
}

static int set(struct store_client *c, struct store_cursor *q)
{
	struct store_bytes key = cursor_bytes(q), value = cursor_bytes(q);
	struct entry *e;
	int r = table_set(c->store, key, value, &e);

	return r < 0 ? r : tell_set(c, e);
}

static int append(struct store_client *c, struct store_cursor *q)
{
	struct store_bytes key = cursor_bytes(q), value = cursor_bytes(q);
	struct entry *e;
	int r = table_append(c->store, key, value, &e);

	return r < 0 ? r : tell_set(c, e);
}

/* As torch: a missing key is set if nothing was expected; else what was expected comes
 * back, as if it were there. No client can wait for a key that exists. */
static int compare_set(struct store_client *c, struct store_cursor *q)
{
	struct store_bytes key = cursor_bytes(q), expected = cursor_bytes(q),
			   desired = cursor_bytes(q), now;
	bool is_there = store_get(c->store, key, &now);
	struct entry *e;
	int r;

	if (is_there ? now.n != expected.n || (now.n && memcmp(now.p, expected.p, now.n) != 0)
		     : expected.n > 0)
		return answer_bytes(c, is_there ? now : expected);
	r = table_set(c->store, key, desired, &e);
	if (r == 0)
		r = answer_bytes(c, desired);
	return r < 0 ? r : tell_set(c, e);
}

/* The count that @key holds, or what it begins with. */
static int count_now(struct store_client *c, struct store_bytes key, int64_t world, int64_t *ret,
		     struct err *err)
{
	const struct entry *e = entry_find(c->store, key);
	char shown[128];

	*ret = 0;
	if (e && e->has_value && entry_number(e, ret) < 0)
		return err_set(err, EPROTO, "counts a key whose value is no number: %s",
			       store_bytes_print(key, shown, sizeof(shown)));
	if ((!e || !e->has_value) && c->store->ev->initial_count)
		*ret = c->store->ev->initial_count(c->store->owner, key, world);
	return 0;
}

static int add(struct store_client *c, struct store_cursor *q, struct err *err)
{
	struct store_bytes key = cursor_bytes(q);
	int64_t more = (int64_t)cursor_u64(q), now;
	struct entry *e;
	int r = count_now(c, key, 0, &now, err);

	if (r == 0 && __builtin_add_overflow(now, more, &now))
		r = err_set(err, EPROTO, "counts beyond 64 bits");
	if (r == 0)
		r = table_count(c->store, key, now, &e);
	if (r == 0)
		r = answer_i64(c, now);
	if (r < 0)
		return r;
	table_wake(e);
	return tell_set(c, e);
}

static int barrier(struct store_client *c, struct store_cursor *q, struct err *err)
{
	struct store_cursor at = *q;
	struct store_bytes key = cursor_bytes(q);
	int64_t world = (int64_t)cursor_u64(q), now;
	struct entry *e;
	int r = count_now(c, key, world > 0 ? world : 0, &now, err);

	if (r == 0)
		r = table_count(c->store, key, now < INT64_MAX ? now + 1 : now, &e);
	if (r < 0)
		return r;
	if (now + 1 < world)
		return wait_begin(c, at, 1, true);
	table_wake(e);
	return answer_u8(c, 0);
}

static int wait(struct store_client *c, struct store_cursor *q)
{
	uint64_t n = cursor_u64(q);
	struct store_cursor first = *q;
	bool is_ready = true;

	for (uint64_t i = 0; i < n; i++)
		tell_missing(c, cursor_bytes(q));
	*q = first;
	for (uint64_t i = 0; i < n && is_ready; i++)
		is_ready = entry_is_there(entry_find(c->store, cursor_bytes(q)));
	return is_ready ? answer_u8(c, 0) : wait_begin(c, first, n, false);
}

static int check(struct store_client *c, struct store_cursor *q)
{
	uint64_t n = cursor_u64(q);
	bool is_ready = true;

	while (n-- > 0 && is_ready)
		is_ready = entry_is_there(entry_find(c->store, cursor_bytes(q)));
	return answer_u8(c, !is_ready);
}

static int get(struct store_client *c, struct store_cursor *q)
{
	struct store_bytes key = cursor_bytes(q);

	tell_missing(c, key);
	return answer_value(c, key);
}

static int refuse_reply(uint64_t bytes, struct err *err)
{
	return err_set(err, EPROTO, "asks for %llu bytes at once; %llu are allowed",
		       (unsigned long long)bytes, (unsigned long long)STORE_REPLY_MAX);
}

static int multi_get(struct store_client *c, struct store_cursor *q, struct err *err)
{
	uint64_t n = cursor_u64(q), bytes = 0;
	struct store_cursor first = *q;
	struct store_bytes value;
	int r = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct store_bytes key = cursor_bytes(q);

		tell_missing(c, key);
		bytes += sizeof(uint64_t);
		if (store_get(c->store, key, &value))
			bytes += value.n;
	}
	if (bytes > STORE_REPLY_MAX)
		return refuse_reply(bytes, err);
	*q = first;
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = answer_value(c, cursor_bytes(q));
	return r;
}

static int multi_set(struct store_client *c, struct store_cursor *q)
{
	uint64_t n = cursor_u64(q);
	int r = 0;

	while (n-- > 0 && r == 0)
		r = set(c, q);
	return r;
}

static int delete_key(struct store_client *c, struct store_cursor *q)
{
	return answer_i64(c, store_delete(c->store, cursor_bytes(q)));
}

static int queue_pop(struct store_client *c, struct store_cursor *q)
{
	struct store_bytes key = cursor_bytes(q);
	struct entry *e = entry_find(c->store, key);
	struct queued *first = e ? e->queue : NULL;
	int r = answer_i64(c, first ? (int64_t)e->n_queued : 0);

	if (!first || r < 0)
		return r;
	r = answer_bytes(c, (struct store_bytes){first->bytes, first->n});
	if (r == 0)
		table_pop(c->store, e);
	return r;
}

static int queue_len(struct store_client *c, struct store_cursor *q)
{
	const struct entry *e = entry_find(c->store, cursor_bytes(q));

	return answer_i64(c, e ? (int64_t)e->n_queued : 0);
}

static int list_keys(struct store_client *c, struct err *err)
{
	uint64_t bytes = 0;
	int r;

	for (const struct entry *e = c->store->entries; e; e = e->hh.next)
		bytes += e->has_value ? sizeof(uint64_t) + e->n_key : 0;
	if (bytes > STORE_REPLY_MAX)
		return refuse_reply(bytes, err);
	r = answer_i64(c, (int64_t)c->store->n_keys);

	for (const struct entry *e = c->store->entries; e && r == 0; e = e->hh.next)
		if (e->has_value)
			r = answer_bytes(c, (struct store_bytes){e->key, e->n_key});
	return r;
}

static int validate(struct store_client *c, struct store_cursor *q, struct err *err)
{
	uint32_t magic = cursor_u32(q);

	if (magic != STORE_MAGIC)
		return err_set(err, EPROTO, "begins with magic %08x instead of %08x", magic,
			       STORE_MAGIC);
	c->is_valid = true;
	return 0;
}

static int ping(struct store_client *c, struct store_cursor *q)
{
	uint32_t number = cursor_u32(q);

	if (c->store->ev->on_ping)
		c->store->ev->on_ping(c->owner, number);
	return answer(c, &number, sizeof(number));
}

static int serve(struct store_client *c, enum store_op op, struct store_cursor *q, struct err *err)
{
	struct store_bytes key, value;

	switch (op) {
	case STORE_VALIDATE:
		return validate(c, q, err);
	case STORE_SET:
		return set(c, q);
	case STORE_COMPARE_SET:
		return compare_set(c, q);
	case STORE_GET:
		return get(c, q);
	case STORE_ADD:
		return add(c, q, err);
	case STORE_CHECK:
		return check(c, q);
	case STORE_WAIT:
		return wait(c, q);
	case STORE_GETNUMKEYS:
		return answer_i64(c, (int64_t)c->store->n_keys);
	case STORE_DELETE_KEY:
		return delete_key(c, q);
	case STORE_APPEND:
		return append(c, q);
	case STORE_MULTI_GET:
		return multi_get(c, q, err);
	case STORE_MULTI_SET:
		return multi_set(c, q);
	case STORE_CANCEL_WAIT:
		wait_end(c);
		return answer_u8(c, 1);
	case STORE_PING:
		return ping(c, q);
	case STORE_QUEUE_PUSH:
		key = cursor_bytes(q);
		value = cursor_bytes(q);
		return table_push(c->store, key, value);
	case STORE_QUEUE_POP:
		return queue_pop(c, q);
	case STORE_QUEUE_LEN:
		return queue_len(c, q);
	case STORE_LIST_KEYS:
		return list_keys(c, err);
	case STORE_BARRIER:
		return barrier(c, q, err);
	case STORE_OPS:
	default:
		return err_set(err, EPROTO, "byte %u is no operation of a TCPStore", op);
	}
}

static int refuse_more(const struct store_client *c, struct err *err)
{
	return err_set(
		err, EDQUOT,
		"all clients of the store together hold %llu MiB of half requests and unread "
		"replies, more than the %llu that they may, and this one holds or wants more than %u KiB "
		"of it",
		(unsigned long long)(c->store->n_client_bytes >> 20),
		(unsigned long long)(c->store->clients_max >> 20), STORE_CLIENT_LITTLE >> 10);
}

int store_client_feed(struct store_client *c, const uint8_t *bytes, size_t n, size_t *ret_taken,
		      struct err *err)
{
	const uint8_t *begin = bytes;

	if (client_has_room(c, n > c->n_in ? n - c->n_in : 0) < 0)
		return refuse_more(c, err);
	c->n_in = n;
	client_count(c);
	while (c->n_in && c->n_unread < STORE_OUTPUT_HIGH) {
		struct store_cursor cursor = {bytes + 1};
		int r = store_scan(&c->scan, bytes, c->n_in, err);

		/* not only once it is whole: a stranger shall not fill the memory */
		if (r >= 0 && c->scan.has_op && (c->scan.op == STORE_VALIDATE) == c->is_valid)
			return err_set(err, EPROTO, "%s %s", store_op_name(c->scan.op),
				       c->is_valid ? "in the middle" : "before VALIDATE");
		if (r < 0)
			return r;
		if (r == 0)
			break;
		c->store->n_requests++;
		r = serve(c, (enum store_op)c->scan.op, &cursor, err);
		if (r == -ENOBUFS)
			return err_set(err, ENOBUFS,
				       "the store is full (%llu MiB) or a value has grown "
				       "beyond %u MiB",
				       (unsigned long long)(STORE_BYTES_MAX >> 20),
				       STORE_GROWN_MAX >> 20);
		if (r == -EDQUOT)
			return refuse_more(c, err);
		if (r == -ENOMEM)
			return err_set(err, ENOMEM, "nboxd is out of memory");
		if (r < 0)
			return r;
		bytes += c->scan.pos;
		c->n_in -= c->scan.pos;
		c->scan = (struct store_scan){0};
	}
	client_count(c);
	*ret_taken = (size_t)(bytes - begin);
	return 0;
}
