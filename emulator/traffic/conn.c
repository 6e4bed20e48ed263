/* See conn.h. */
#include "traffic/conn.h"

#include <assert.h>
#include <stdlib.h>

struct conn *conn_get(struct conn **all, uint32_t src, uint32_t dst, uint32_t channel)
{
	struct conn_key key = {src, dst, channel};
	struct conn *c;

	HASH_FIND(hh, *all, &key, sizeof(key), c);
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->key = key;
	HASH_ADD(hh, *all, key, sizeof(key), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	return c;
}

void conns_free(struct conn **all)
{
	struct conn *c, *next;

	HASH_ITER(hh, *all, c, next) {
		HASH_DEL(*all, c);
		free(c);
	}
}

void conn_add(struct conn *c, struct flow *f)
{
	struct flow **first = f->key.is_send ? &c->sends : &c->receives;
	struct flow **last = f->key.is_send ? &c->last_send : &c->last_receive;

	if (*first)
		(*last)->next_in_conn = f;
	else
		*first = f;
	*last = f;
}

void conn_drop(struct conn *c, const struct flow *f)
{
	struct flow **first = f->key.is_send ? &c->sends : &c->receives;

	assert(*first == f);
	*first = f->next_in_conn;
}
