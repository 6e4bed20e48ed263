/* Places: the ranks sorted by node and template, so that a node's stand side by side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "places.h"

static int compare(const struct rewrite_places *p, uint32_t rank, uint32_t node, uint32_t template)
{
	if (p->node[rank] != node)
		return p->node[rank] < node ? -1 : 1;
	if (p->template[rank] != template)
		return p->template[rank] < template ? -1 : 1;
	return 0;
}

static int by_place(const void *a, const void *b, void *places)
{
	const struct rewrite_places *p = places;
	uint32_t rank = *(const uint32_t *)b;

	return compare(p, *(const uint32_t *)a, p->node[rank], p->template[rank]);
}

int64_t rewrite_same_place(const struct rewrite_places *p, uint32_t rank, int64_t of)
{
	uint32_t from = 0, to = p->n_ranks;

	if (of < 0 || of >= p->n_ranks)
		return -1;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		int c = compare(p, p->by_place[middle], p->node[rank], (uint32_t)of);

		if (!c)
			return p->by_place[middle];
		if (c < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return -1;
}

/* Each rank's template is a real rank of the communicator. */
static int check_templates(const struct rewrite_places *p, char *sentence, size_t size)
{
	for (uint32_t r = 0; r < p->n_ranks; r++) {
		uint32_t t = p->template[r];

		if (t < p->n_ranks && p->template[t] == t)
			continue;
		snprintf(
			sentence, size,
			"rank %u of the communicator is made of rank %u, which is none of its real ranks",
			r, t);
		return -EINVAL;
	}
	return 0;
}

/* How many ranks stand on the node of the rank at @at of by_place, which is its node's first. */
static uint32_t node_size(const struct rewrite_places *p, uint32_t at)
{
	uint32_t n = 1;

	while (at + n < p->n_ranks && p->node[p->by_place[at + n]] == p->node[p->by_place[at]])
		n++;
	return n;
}

/* Where the node of real rank @t begins in by_place. */
static uint32_t node_start(const struct rewrite_places *p, uint32_t t)
{
	uint32_t from = 0, to = p->n_ranks;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (p->node[p->by_place[middle]] < p->node[t])
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int uneven(uint32_t node, uint32_t n, uint32_t of, uint32_t n_of, char *sentence,
		  size_t size)
{
	snprintf(
		sentence, size,
		"node %u has %u ranks of the communicator and is made of node %u, which has %u: NCCL needs each "
		"virtual node to have the ranks of its real one, each once",
		node, n, of, n_of);
	return -EINVAL;
}

/* The node whose first rank stands at @at of by_place and that has @n ranks: sorted by template,
 * they are the ranks of the real node in their order. */
static int check_node(const struct rewrite_places *p, uint32_t at, uint32_t n, char *sentence,
		      size_t size)
{
	uint32_t real = p->template[p->by_place[at]], start = node_start(p, real),
		 n_real = node_size(p, start);

	if (n != n_real)
		return uneven(p->node[p->by_place[at]], n, p->node[real], n_real, sentence, size);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = p->by_place[at + i];

		if (p->template[rank] == p->by_place[start + i])
			continue;
		snprintf(
			sentence, size,
			"rank %u of the communicator, on node %u, is made of rank %u on node %u: NCCL needs each virtual "
			"node to have the ranks of its real one (node %u), each once",
			rank, p->node[rank], p->template[rank], p -> node[p->template[rank]],
			p -> node[real]);
		return -EINVAL;
	}
	return 0;
}

int rewrite_places_init(struct rewrite_places *p, char *sentence, size_t size)
{
	int r;

	p->by_place = NULL;
	r = check_templates(p, sentence, size);
	if (r < 0)
		return r;
	p->by_place = calloc(p->n_ranks ? p->n_ranks : 1, sizeof(*p->by_place));
	if (!p->by_place) {
		snprintf(sentence, size, "no memory for the places of %u ranks", p->n_ranks);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->n_ranks; i++)
		p->by_place[i] = i;
	qsort_r(p->by_place, p->n_ranks, sizeof(*p->by_place), by_place, p);
	for (uint32_t at = 0, n; at < p->n_ranks; at += n) {
		n = node_size(p, at);
		r = check_node(p, at, n, sentence, size);
		if (r < 0) {
			rewrite_places_deinit(p);
			return r;
		}
	}
	return 0;
}

void rewrite_places_deinit(struct rewrite_places *p)
{
	free(p->by_place);
	p->by_place = NULL;
}
