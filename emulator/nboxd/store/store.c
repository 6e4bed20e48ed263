/* The key table and the waiters; see store.h. */
#include "nboxd/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

int store_new(const struct store_events *ev, void *owner, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ev = ev;
	s->owner = owner;
	s->clients_max = STORE_CLIENTS_MAX;
	*ret = s;
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	store_clear(s);
	free(s);
	return NULL;
}

struct store_counts store_counts(const struct store *s)
{
	return (struct store_counts){s->n_keys,         s->n_bytes, s->n_clients,
				     s->n_client_bytes, s->n_waits, s->n_requests};
}

/* --- entries ------------------------------------------------------------------------ */

struct entry *entry_find(const struct store *s, struct store_bytes key)
{
	struct entry *e;

	HASH_FIND(hh, s->entries, key.p, key.n, e);
	return e;
}

bool entry_is_there(const struct entry *e)
{
	return e && (e->has_value || e->queue);
}

/* What a key costs besides its name and values: a store of empty ones is to be bounded too. */
#define ENTRY_BYTES sizeof(struct entry)

/* Whether @more bytes may be kept. */
static bool has_room(const struct store *s, uint64_t more)
{
	return s->n_bytes + more <= STORE_BYTES_MAX;
}

/* The entry of @key, made when there is none. Return: NULL: no memory. */
static struct entry *entry_make(struct store *s, struct store_bytes key)
{
	struct entry *e = entry_find(s, key);

	if (e)
		return e;
	e = calloc(1, ENTRY_BYTES + key.n);
	if (!e)
		return NULL;
	e->n_key = key.n;
	if (key.n)
		memcpy(e->key, key.p, key.n);
	HASH_ADD_KEYPTR(hh, s->entries, e->key, e->n_key, e);
	s->n_bytes += ENTRY_BYTES + key.n;
	return e;
}

static void value_drop(struct store *s, struct entry *e)
{
	s->n_bytes -= e->value.n;
	buffer_deinit(&e->value);
	s->n_keys -= e->has_value;
	e->has_value = false;
}

static void queue_drop(struct store *s, struct entry *e)
{
	struct queued *q, *next;

	DL_FOREACH_SAFE(e->queue, q, next) {
		s->n_bytes -= sizeof(*q) + q->n;
		free(q);
	}
	e->queue = NULL;
	e->n_queued = 0;
}

void entry_tidy(struct store *s, struct entry *e)
{
	if (e->has_value || e->queue || e->awaits)
		return;
	HASH_DEL(s->entries, e);
	s->n_bytes -= ENTRY_BYTES + e->n_key;
	buffer_deinit(&e->value);
	free(e);
}

void store_clear(struct store *s)
{
	struct entry *e, *next;

	HASH_ITER(hh, s->entries, e, next) {
		value_drop(s, e);
		queue_drop(s, e);
		entry_tidy(s, e);
	}
}

/* --- changes ------------------------------------------------------------------------ */

/* Replaces the value; wakes no client. The old one stays when there is no memory. */
static int value_set(struct store *s, struct store_bytes key, struct store_bytes value,
		     struct entry **ret)
{
	struct buffer fresh = {0};
	struct entry *e;

	if (!has_room(s, ENTRY_BYTES + key.n + value.n))
		return -ENOBUFS;
	if (buffer_add(&fresh, value.p, value.n) < 0)
		return -ENOMEM;
	e = entry_make(s, key);
	if (!e) {
		buffer_deinit(&fresh);
		return -ENOMEM;
	}
	value_drop(s, e);
	e->value = fresh;
	e->has_value = true;
	s->n_keys++;
	s->n_bytes += value.n;
	*ret = e;
	return 0;
}

int table_set(struct store *s, struct store_bytes key, struct store_bytes value, struct entry **ret)
{
	int r = value_set(s, key, value, ret);

	if (r == 0)
		table_wake(*ret);
	return r;
}

int table_append(struct store *s, struct store_bytes key, struct store_bytes value,
		 struct entry **ret)
{
	struct entry *e = entry_find(s, key);

	if (!e || !e->has_value)
		return table_set(s, key, value, ret);
	if (!has_room(s, value.n) || e->value.n + value.n > STORE_GROWN_MAX)
		return -ENOBUFS;
	if (buffer_add(&e->value, value.p, value.n) < 0)
		return -ENOMEM;
	s->n_bytes += value.n;
	table_wake(e);
	*ret = e;
	return 0;
}

int table_count(struct store *s, struct store_bytes key, int64_t value, struct entry **ret)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);

	return value_set(s, key, (struct store_bytes){(const uint8_t *)text, (size_t)n}, ret);
}

int entry_number(const struct entry *e, int64_t *ret)
{
	char text[32], *end;
	size_t n = e->value.n < sizeof(text) - 1 ? e->value.n : sizeof(text) - 1;

	memcpy(text, n ? e->value.data : (const uint8_t *)"", n);
	text[n] = '\0';
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return end == text || errno ? -EPROTO : 0;
}

int client_has_room(const struct store_client *c, size_t more)
{
	return c->n_held + more <= STORE_CLIENT_LITTLE ||
			       c->store->n_client_bytes + more <= c->store->clients_max
		       ? 0
		       : -EDQUOT;
}

void client_count(struct store_client *c)
{
	size_t n = c->n_in + c->n_unread + c->n_room * sizeof(*c->awaits);

	c->store->n_client_bytes += n - c->n_held; /* modulo 2^64: may be less */
	c->n_held = n;
}

void client_send(struct store_client *c, const void *bytes, size_t n)
{
	c->store->ev->on_output(c->owner, bytes, n);
	c->n_unread += n;
	client_count(c);
}

/* --- answers ------------------------------------------------------------------------ */

/* One key of @a's client has come. */
static void await_met(struct await *a)
{
	static const uint8_t stop_waiting = 0;
	struct store_client *c = a->client;

	DL_DELETE(a->entry->awaits, a);
	a->entry = NULL;
	if (--c->n_missing > 0)
		return;
	wait_end(c);
	client_send(c, &stop_waiting, sizeof(stop_waiting));
}

void table_wake(struct entry *e)
{
	while (e->awaits)
		await_met(e->awaits);
}

/* Wakes one: a value in a queue is for one. */
int table_push(struct store *s, struct store_bytes key, struct store_bytes value)
{
	struct queued *q;
	struct entry *e;

	if (!has_room(s, ENTRY_BYTES + key.n + sizeof(*q) + value.n))
		return -ENOBUFS;
	q = malloc(sizeof(*q) + value.n);
	e = q ? entry_make(s, key) : NULL;
	if (!e) {
		free(q);
		return -ENOMEM;
	}
	q->n = value.n;
	if (value.n)
		memcpy(q->bytes, value.p, value.n);
	DL_APPEND(e->queue, q);
	e->n_queued++;
	s->n_bytes += sizeof(*q) + value.n;
	if (e->awaits)
		await_met(e->awaits);
	return 0;
}

void table_pop(struct store *s, struct entry *e)
{
	struct queued *q = e->queue;

	DL_DELETE(e->queue, q);
	e->n_queued--;
	s->n_bytes -= sizeof(*q) + q->n;
	free(q);
	entry_tidy(s, e);
}

int store_delete(struct store *s, struct store_bytes key)
{
	struct entry *e = entry_find(s, key);

	if (!e || !e->has_value)
		return 0;
	value_drop(s, e);
	entry_tidy(s, e);
	return 1;
}

int store_set(struct store *s, struct store_bytes key, struct store_bytes value)
{
	struct entry *e;

	return table_set(s, key, value, &e);
}

bool store_get(const struct store *s, struct store_bytes key, struct store_bytes *ret)
{
	const struct entry *e = entry_find(s, key);

	if (!e || !e->has_value)
		return false;
	*ret = (struct store_bytes){e->value.data, e->value.n};
	return true;
}

/* --- waiting ------------------------------------------------------------------------ */

int wait_begin(struct store_client *c, struct store_cursor cursor, uint64_t n, bool is_barrier)
{
	struct store *s = c->store;
	struct await *awaits;
	size_t n_missing = 0;
	int r;

	wait_end(c);
	r = client_has_room(c, n * sizeof(*awaits));
	if (r < 0)
		return r;
	awaits = calloc(n ? n : 1, sizeof(*awaits));
	if (!awaits)
		return -ENOMEM;
	c->n_room = n;
	for (uint64_t i = 0; i < n; i++) {
		struct store_bytes key = cursor_bytes(&cursor);
		struct entry *e = entry_find(s, key);

		if (entry_is_there(e) && !is_barrier)
			continue;
		r = e || has_room(s, ENTRY_BYTES + key.n) ? 0 : -ENOBUFS;
		e = r < 0 ? NULL : entry_make(s, key);
		if (!e) {
			r = r < 0 ? r : -ENOMEM;
			break;
		}
		awaits[n_missing] = (struct await){.client = c, .entry = e};
		DL_APPEND(e->awaits, &awaits[n_missing]);
		n_missing++;
	}
	c->awaits = awaits;
	c->n_awaits = c->n_missing = n_missing;
	client_count(c);
	s->n_waits++;
	if (s->ev->on_wait)
		s->ev->on_wait(c->owner, true);
	if (r < 0)
		wait_end(c);
	return r;
}

void wait_end(struct store_client *c)
{
	struct await *awaits = c->awaits;

	if (!awaits)
		return;
	for (size_t i = 0; i < c->n_awaits; i++) {
		struct entry *e = awaits[i].entry;

		if (!e)
			continue;
		DL_DELETE(e->awaits, &awaits[i]);
		entry_tidy(c->store, e);
	}
	free(awaits);
	c->awaits = NULL;
	c->n_awaits = c->n_missing = c->n_room = 0;
	client_count(c);
	c->store->n_waits--;
	if (c->store->ev->on_wait)
		c->store->ev->on_wait(c->owner, false);
}

size_t store_client_n_awaited(const struct store_client *c)
{
	return c->n_missing;
}

struct store_bytes store_client_awaited(const struct store_client *c, size_t i)
{
	for (size_t k = 0; k < c->n_awaits; k++)
		if (c->awaits[k].entry && i-- == 0)
			return (struct store_bytes){c->awaits[k].entry->key,
						    c->awaits[k].entry->n_key};
	return (struct store_bytes){NULL, 0};
}
