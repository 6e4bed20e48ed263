/* See align.h. */
#include "trace/align.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

#include "base/cleanup.h"
#include "schedule/coll.h"
#include "trace/finish.h"

struct family_key {
	uint64_t bytes;
	uint32_t rank, peer, name, comm;
};

struct family {
	UT_hash_handle hh;
	struct family_key key;
	uint32_t number;
};

struct builder {
	const struct trace *t;
	struct clocks_recv *recvs; /* owned */
	struct clocks_send *sends; /* owned */
	uint32_t *op;              /* owned; of a receive */
	uint32_t *of_host;         /* owned; its last send */
	struct family *families;
	size_t n_recvs, n_sends, recvs_size, sends_size, op_size;
	uint32_t n_families;
};

static void builder_deinit(struct builder *b)
{
	struct family *f, *next;

	HASH_ITER(hh, b->families, f, next) {
		HASH_DEL(b->families, f);
		free(f);
	}
	free(b->recvs);
	free(b->sends);
	free(b->op);
	free(b->of_host);
}

static bool has_root(const struct trace_op *op)
{
	return op->coll == COLL_BROADCAST || op->coll == COLL_SCATTER || op->coll == COLL_REDUCE ||
	       op->coll == COLL_GATHER;
}

/* Return: 0; -ENOMEM. */
static int family_of(struct builder *b, const struct trace_op *op, uint32_t *ret)
{
	struct family_key key = {op->bytes, op->rank, op->peer, op->name, op->comm};
	struct family *f;

	if (op->kind == TRACE_COLLECTIVE) {
		if (!has_root(op))
			key.rank = TRACE_NONE; /* over at all of them at about the same time */
		key.peer = op->coll;
		key.name = TRACE_NONE;
	}
	HASH_FIND(hh, b->families, &key, sizeof(key), f);
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f)
			return -ENOMEM;
		f->key = key;
		f->number = b->n_families++;
		HASH_ADD(hh, b->families, key, sizeof(f->key), f);
		if (!f->hh.tbl) {
			free(f);
			return -ENOMEM;
		}
	}
	*ret = f->number;
	return 0;
}

/* Room for one more. Return: false: no memory. */
static bool grow(void **list, size_t n, size_t *size, size_t each)
{
	size_t more = *size ? 2 * *size : 256;
	void *moved;

	if (n < *size)
		return true;
	moved = realloc(*list, more * each);
	if (!moved)
		return false;
	*list = moved;
	*size = more;
	return true;
}

static bool is_root(const struct trace *t, const struct trace_op *op)
{
	return op->peer == t->ranks[op->rank].rank;
}

/* Does another one wait for what @op has? */
static bool sends(const struct trace *t, const struct trace_op *op)
{
	if (op->kind != TRACE_COLLECTIVE)
		return op->kind == TRACE_SEND;
	return op->coll == COLL_BROADCAST || op->coll == COLL_SCATTER ? is_root(t, op)
								      : op->coll != COLL_SENDRECV;
}

/* Does it wait for what others have? */
static bool receives(const struct trace *t, const struct trace_op *op)
{
	if (op->kind != TRACE_COLLECTIVE)
		return op->kind == TRACE_RECV;
	switch (op->coll) {
	case COLL_BROADCAST:
	case COLL_SCATTER:
		return !is_root(t, op);
	case COLL_REDUCE:
	case COLL_GATHER:
		return is_root(t, op);
	default:
		return op->coll != COLL_SENDRECV;
	}
}

/* The last one of a host is all that counts. Return: 0; -ENOMEM. */
static int add_send(struct builder *b, const struct trace_op *op, uint32_t first)
{
	uint32_t host = b->t->ranks[op->rank].host, i = b->of_host[host];

	if (i >= first && i < b->n_sends && b->sends[i].host == host) {
		b->sends[i].start_ns = fmax(b->sends[i].start_ns, op->start_ns);
		return 0;
	}
	if (!grow((void **)&b->sends, b->n_sends, &b->sends_size, sizeof(*b->sends)))
		return -ENOMEM;
	b->of_host[host] = (uint32_t)b->n_sends;
	b->sends[b->n_sends++] = (struct clocks_send){host, op->start_ns};
	return 0;
}

/* Of the sends from @first on. Return: 0; -ENOMEM. */
static int add_recv(struct builder *b, uint32_t op, uint32_t first)
{
	const struct trace_op *to = &b->t->ops[op];
	struct clocks_recv r = {.host = b->t->ranks[to->rank].host,
				.posted_ns = to->start_ns,
				.end_ns = to->end_ns,
				.first_send = first,
				.n_sends = (uint32_t)b->n_sends - first};

	if (!grow((void **)&b->recvs, b->n_recvs, &b->recvs_size, sizeof(*b->recvs)) ||
	    !grow((void **)&b->op, b->n_recvs, &b->op_size, sizeof(*b->op)) ||
	    family_of(b, to, &r.family) < 0)
		return -ENOMEM;
	b->op[b->n_recvs] = op;
	b->recvs[b->n_recvs++] = r;
	return 0;
}

/* Ops that are one collective, or the ends of one message. That one of them sends to itself, too,
 * changes nothing. Return: 0; -ENOMEM. */
static int add_join(struct builder *b, const uint32_t *joined, uint32_t n)
{
	const struct trace *t = b->t;
	uint32_t first = (uint32_t)b->n_sends, n_senders = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		if (sends(t, &t->ops[joined[i]])) {
			n_senders++;
			r = add_send(b, &t->ops[joined[i]], first);
		}
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		const struct trace_op *to = &t->ops[joined[i]];

		if (receives(t, to) && n_senders > sends(t, to))
			r = add_recv(b, joined[i], first);
	}
	return r;
}

static int contradiction(const struct trace *t, const uint32_t *op, const struct clocks_conflict *c,
			 struct err *err)
{
	const struct trace_op *a = &t->ops[op[c->recv]], *b = &t->ops[op[c->other]];

	return err_set(
		err, EINVAL,
		"the clocks contradict each other by %.3f us: '%.60s' of rank %u, which ends "
		"at %.3f us, and '%.60s' of rank %u, at %.3f, cannot both end behind the "
		"starts of what they receive, whatever the clocks' offsets: a clock was set, "
		"or drifts (--drift)",
		c->ns / 1e3, trace_name(t, a->name), t->ranks[a->rank].rank, a->end_ns / 1e3,
		trace_name(t, b->name), t->ranks[b->rank].rank, b->end_ns / 1e3);
}

int align_find(const struct trace *t, bool has_drift, struct clocks *ret, struct err *err)
{
	CLEANUP(builder_deinit) struct builder b = {.t = t};
	struct clocks_conflict conflict;
	int r;

	b.of_host = calloc((size_t)t->n_hosts + 1, sizeof(*b.of_host));
	r = b.of_host ? 0 : -ENOMEM;
	for (uint32_t j = 0; r == 0 && j < t->n_joins; j++)
		r = add_join(&b, &t->joined[t->first_joined[j]],
			     t->first_joined[j + 1] - t->first_joined[j]);
	if (r == 0)
		r = clocks_align(&(struct clocks_ask){.recvs = b.recvs,
						      .sends = b.sends,
						      .n_hosts = t->n_hosts,
						      .n_recvs = (uint32_t)b.n_recvs,
						      .n_families = b.n_families,
						      .has_drift = has_drift},
				 ret, &conflict, err);
	return r > 0 ? contradiction(t, b.op, &conflict, err) : r;
}

/* Begins no RECV before its SEND. */
static void clip(struct trace *t)
{
	for (uint32_t j = 0; j < t->n_joins; j++) {
		double sent = -INFINITY;

		for (uint32_t i = t->first_joined[j]; i < t->first_joined[j + 1]; i++)
			if (t->ops[t->joined[i]].kind == TRACE_SEND)
				sent = fmax(sent, t->ops[t->joined[i]].start_ns);
		for (uint32_t i = t->first_joined[j]; i < t->first_joined[j + 1]; i++) {
			struct trace_op *op = &t->ops[t->joined[i]];

			if (op->kind == TRACE_RECV)
				op->start_ns = fmin(op->end_ns, fmax(op->start_ns, sent));
		}
	}
}

int align_apply(struct trace *t, const struct clocks *c)
{
	for (uint32_t i = 0; i < t->n_ops; i++) {
		uint32_t host = t->ranks[t->ops[i].rank].host;

		t->ops[i].start_ns = clocks_time(c, host, t->ops[i].start_ns);
		t->ops[i].end_ns = clocks_time(c, host, t->ops[i].end_ns);
	}
	clip(t);
	return trace_finish(t);
}

uint64_t align_reversed(const struct trace *t)
{
	uint64_t n = 0;

	for (uint32_t j = 0; j < t->n_joins; j++) {
		double sent = -INFINITY;

		for (uint32_t i = t->first_joined[j]; i < t->first_joined[j + 1]; i++)
			if (t->ops[t->joined[i]].kind == TRACE_SEND)
				sent = fmax(sent, t->ops[t->joined[i]].start_ns);
		for (uint32_t i = t->first_joined[j]; i < t->first_joined[j + 1]; i++)
			n += t->ops[t->joined[i]].kind == TRACE_RECV &&
			     t->ops[t->joined[i]].end_ns < sent;
	}
	return n;
}
