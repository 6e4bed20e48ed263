/* See node.h. Nodes are forgotten one by one when there are too many, those first that nobody has
 * asked for the longest. */
#include "timeline/node.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#define NODES_MAX 4096
/* Of ranks that are told apart, in all; at least 64 nodes a real rank. */
#define TIMES_BYTES_MAX ((size_t)64 << 20)
#define FOLD_NS 0.5

double *each_new(struct timeline *t)
{
	double *each = t->spare;

	t->spare = NULL;
	if (!each)
		each = malloc(t->n_ranks * sizeof(*each));
	t->n_each += each != NULL;
	return each;
}

void each_free(struct timeline *t, double **each)
{
	if (!*each)
		return;
	t->n_each--;
	if (t->spare)
		free(*each);
	else
		t->spare = *each;
	*each = NULL;
}

void times_fold(struct timeline *t, struct times *x)
{
	for (uint32_t i = 1; i < t->n_ranks; i++)
		if (fabs(x->each[i] - x->each[0]) >= FOLD_NS)
			return;
	x->all = x->each[0];
	each_free(t, &x->each);
}

static void node_free(struct timeline_node *n)
{
	struct queue *q = NULL;

	if (n->queue)
		HASH_FIND(hh, n->of->queues, &n->queue, sizeof(n->queue), q);
	if (q && q->last == n) {
		HASH_DELETE(hh, n->of->queues, q);
		free(q);
	}
	each_free(n->of, &n->at.each);
	each_free(n->of, &n->end.each);
	free(n);
}

void node_forget(struct timeline_node *n)
{
	struct timeline *t = n->of;

	HASH_DELETE(hh, t->by_name, n);
	DL_DELETE2(t->oldest, n, older, newer);
	t->n_nodes--;
	n->is_forgotten = true;
	if (!n->n_holders)
		node_free(n);
}

static void drop(struct timeline_node *n)
{
	if (--n->n_holders == 0 && n->is_forgotten)
		node_free(n);
}

struct timeline_node *timeline_node_hold(struct timeline_node *n)
{
	n->n_holders++;
	return n;
}

void timeline_node_release(struct timeline_node *n)
{
	if (!n)
		return;
	if (n->before)
		drop(n->before);
	n->before = NULL;
	drop(n);
}

int node_line_up(struct timeline_node *n, uint32_t number)
{
	struct queue *q;

	HASH_FIND(hh, n->of->queues, &number, sizeof(number), q);
	if (!q) {
		q = calloc(1, sizeof(*q));
		if (!q)
			return -ENOMEM;
		q->number = number;
		HASH_ADD(hh, n->of->queues, number, sizeof(number), q);
	}
	n->before = q->last;
	if (n->before)
		n->before->n_holders++;
	q->last = n;
	n->queue = number;
	return 0;
}

static bool is_full(const struct timeline *t)
{
	size_t n_each = TIMES_BYTES_MAX / t->all->n_real / sizeof(double) / t->n_ranks;

	return t->n_nodes > NODES_MAX || t->n_each > (n_each > 64 ? n_each : 64);
}

struct timeline_node *node_find(struct timeline *t, uint64_t name)
{
	struct timeline_node *n = NULL;

	if (name)
		HASH_FIND(hh, t->by_name, &name, sizeof(name), n);
	if (n) {
		DL_DELETE2(t->oldest, n, older, newer);
		DL_APPEND2(t->oldest, n, older, newer);
	}
	return n;
}

void node_add(struct timeline *t, struct timeline_node *n)
{
	struct timeline_node *same = node_find(t, n->name);

	if (same) /* of a graph's replay before */
		node_forget(same);
	DL_APPEND2(t->oldest, n, older, newer);
	t->latest = n;
	HASH_ADD(hh, t->by_name, name, sizeof(n->name), n);
	t->n_nodes++;
	while (is_full(t) && t->oldest != n)
		node_forget(t->oldest);
}
