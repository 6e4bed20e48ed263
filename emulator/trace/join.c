/* See join.h. */
#include "trace/join.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

/* What the ops of a join have in common. Filled with zeros, as it is hashed. */
struct key {
	uint64_t seq;
	uint32_t comm, step, tensor, from, to, nth;
};

struct join {
	UT_hash_handle hh;
	struct key key;
	uint32_t number; /* of the join; how many there were, of a counter */
};

struct joiner {
	struct trace *t;
	struct join *joins, *counters; /* counters: of what one rank has of a key without nth */
	uint32_t n;
};

/* Return: NULL: no memory. */
static struct join *find(struct join **joins, const struct key *key, uint32_t number)
{
	struct join *j;

	HASH_FIND(hh, *joins, key, sizeof(*key), j);
	if (j)
		return j;
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->key = *key;
	j->number = number;
	HASH_ADD(hh, *joins, key, sizeof(j->key), j);
	if (!j->hh.tbl) {
		free(j);
		return NULL;
	}
	return j;
}

static void free_all(struct join **joins)
{
	struct join *j, *next;

	HASH_ITER(hh, *joins, j, next) {
		HASH_DEL(*joins, j);
		free(j);
	}
}

/* What a message's two ends are both called: "Comm.a.SEND~>0_1_2_3" without SEND or RECV. Return:
 * 0; -ENOMEM. */
static int tensor_of(struct trace *t, const struct trace_op *op, uint32_t *ret)
{
	const char *name = trace_name(t, op->name), *end = strstr(name, "~>");
	const char *word = op->kind == TRACE_SEND ? ".SEND" : ".RECV";
	size_t n = end ? (size_t)(end - name) : strlen(name);
	char *text;
	int r;

	*ret = TRACE_NONE;
	if (n < strlen(word) || strncmp(name + n - strlen(word), word, strlen(word)) != 0)
		return 0;
	text = malloc(strlen(name) + 1);
	if (!text)
		return -ENOMEM;
	sprintf(text, "%.*s%s", (int)(n - strlen(word)), name, name + n);
	r = trace_add_name(t, text, ret);
	free(text);
	return r;
}

/* Return: 1: it has a key; 0: it is alone; -ENOMEM. */
static int key_of(struct joiner *j, struct trace_op *op, struct key *ret)
{
	const struct trace *t = j->t;
	bool is_send = op->kind == TRACE_SEND;
	int r;

	*ret = (struct key){.seq = op->seq,
			    .comm = op->comm,
			    .step = op->step,
			    .from = TRACE_NONE,
			    .to = TRACE_NONE,
			    .tensor = TRACE_NONE};
	if (op->kind == TRACE_COLLECTIVE) {
		if (op->comm == TRACE_NONE || op->coll == TRACE_NONE)
			return 0;
		if (op->seq != UINT64_MAX)
			ret->step = 0;
		return 1;
	}
	if (!is_send && op->kind != TRACE_RECV)
		return 0;
	r = tensor_of(j->t, op, &ret->tensor);
	if (r < 0)
		return r;
	if (op->peer == TRACE_NONE && ret->tensor != TRACE_NONE)
		op->peer = t->ranks[(op->rank + (is_send ? 1 : t->n_ranks - 1)) % t->n_ranks].rank;
	if (op->peer == TRACE_NONE)
		return 0;
	if (op->coll == TRACE_NONE)
		ret->seq = 0; /* each end counts its own */
	ret->from = is_send ? t->ranks[op->rank].rank : op->peer;
	ret->to = is_send ? op->peer : t->ranks[op->rank].rank;
	return 1;
}

/* Return: 0; -ENOMEM. */
static int join_op(struct joiner *j, struct trace_op *op)
{
	struct join *counter, *found;
	struct key key;
	int r = key_of(j, op, &key);

	op->join = TRACE_NONE;
	if (r <= 0)
		return r;
	if (op->kind != TRACE_COLLECTIVE || op->seq == UINT64_MAX) {
		key.nth = 2 * op->rank + (op->kind == TRACE_SEND); /* whose counter */
		counter = find(&j->counters, &key, 0);
		if (!counter)
			return -ENOMEM;
		key.nth = counter->number++;
	}
	found = find(&j->joins, &key, j->n);
	if (!found)
		return -ENOMEM;
	j->n += found->number == j->n;
	op->join = found->number;
	return 0;
}

/* Return: 0; -ENOMEM. */
static int list_joins(struct trace *t)
{
	uint32_t at = 0, *first = calloc((size_t)t->n_joins + 1, sizeof(*first));

	free(t->first_joined);
	free(t->joined);
	t->first_joined = first;
	t->joined = calloc((size_t)t->n_ops + 1, sizeof(*t->joined));
	if (!first || !t->joined)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].join != TRACE_NONE)
			first[t->ops[i].join]++;
	for (uint32_t k = 0; k < t->n_joins; k++) {
		at += first[k];
		first[k] = at; /* where it ends */
	}
	first[t->n_joins] = at;
	for (uint32_t i = t->n_ops; i-- > 0;)
		if (t->ops[i].join != TRACE_NONE)
			t->joined[--first[t->ops[i].join]] = i;
	return 0;
}

int trace_join(struct trace *t)
{
	struct joiner j = {.t = t};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->n_ops; i++)
		r = join_op(&j, &t->ops[i]);
	free_all(&j.joins);
	free_all(&j.counters);
	t->n_joins = j.n;
	return r < 0 ? r : list_joins(t);
}
