/* See nodes.h. */
#include "traffic/nodes.h"

#include <errno.h>
#include <stdlib.h>

#include "schedule/dtree.h"

void nodes_deinit(struct nodes *s)
{
	free(s->of);
	free(s->n_on);
	free(s->real);
	free(s->index);
	free(s->hops);
	free(s->above[0]);
	free(s->above[1]);
	*s = (struct nodes){0};
}

/* Numbers the nodes as their first ranks come. */
static int number(struct nodes *s, const uint32_t *node, struct err *err)
{
	uint32_t largest = 0, *seen;

	for (uint32_t i = 0; i < s->n_ranks; i++)
		largest = node[i] > largest ? node[i] : largest;
	seen = calloc((size_t)largest + 1, sizeof(*seen)); /* number + 1 */
	if (!seen)
		return err_set(err, ENOMEM, "no memory for %u nodes", largest);
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		if (!seen[node[i]])
			seen[node[i]] = ++s->n;
		s->of[i] = seen[node[i]] - 1;
		s->n_on[s->of[i]]++;
	}
	free(seen);
	return 0;
}

static int find_real(struct nodes *s, const struct bitmap *real, struct err *err)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->index[i] = 0; /* its real ranks */
	for (uint32_t i = 0; i < s->n_ranks; i++)
		s->index[s->of[i]] += bitmap_test(real, i);
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->index[i] && s->index[i] != s->n_on[i])
			return err_set(
				err, EINVAL,
				"of node %u's %u ranks in the communicator %u are real: where "
				"NCCL runs at the virtual size, a node is real as a whole or "
				"not at all; start all of its ranks",
				i, s->n_on[i], s->index[i]);
		if (s->index[i])
			s->real[s->n_real++] = i;
		s->index[i] = s->index[i] ? s->n_real - 1 : NODES_NONE;
	}
	return 0;
}

static void count_hops(struct nodes *s)
{
	for (uint32_t i = 0; i < s->n_real; i++) {
		uint32_t at = (s->real[nodes_before(s, i)] + 1) % s->n;

		for (s->hops[i] = 0; at != s->real[i]; at = (at + 1) % s->n)
			s->hops[i] += s->n_on[at];
	}
}

static void look_up(struct nodes *s, int tree)
{
	for (uint32_t i = 0; i < s->n_real; i++) {
		struct nodes_above *above = &s->above[tree][i];
		uint32_t at = s->real[i];

		for (;;) {
			int32_t parent, child[2];

			sched_dtree(s->n, at, tree, &parent, child);
			*above = (struct nodes_above){NODES_NONE, at};
			if (parent < 0)
				break;
			above->real = s->index[parent];
			if (above->real != NODES_NONE)
				break;
			at = (uint32_t)parent;
		}
	}
}

int nodes_init(struct nodes *s, uint32_t n_ranks, const uint32_t *node, const struct bitmap *real,
	       struct err *err)
{
	int r;

	*s = (struct nodes){.n_ranks = n_ranks};
	s->of = calloc(n_ranks, sizeof(*s->of));
	s->n_on = calloc(n_ranks, sizeof(*s->n_on));
	s->real = calloc(n_ranks, sizeof(*s->real));
	s->index = calloc(n_ranks, sizeof(*s->index));
	r = s->of && s->n_on && s->real && s->index ? 0 : -ENOMEM;
	r = r ? r : number(s, node, err);
	r = r ? r : find_real(s, real, err);
	if (r == 0) {
		s->hops = calloc(s->n_real + 1, sizeof(*s->hops));
		for (int tree = 0; tree < 2; tree++)
			s->above[tree] = calloc(s->n_real + 1, sizeof(*s->above[tree]));
		r = s->hops && s->above[0] && s->above[1] ? 0 : -ENOMEM;
	}
	if (r < 0) {
		nodes_deinit(s);
		return r;
	}
	count_hops(s);
	look_up(s, 0);
	look_up(s, 1);
	return 0;
}

uint32_t nodes_before(const struct nodes *s, uint32_t i)
{
	return i ? i - 1 : s->n_real - 1;
}

uint32_t nodes_after(const struct nodes *s, uint32_t i)
{
	return i + 1 < s->n_real ? i + 1 : 0;
}

bool nodes_is_between(const struct nodes *s, uint32_t i, uint32_t node)
{
	uint32_t before = s->real[nodes_before(s, i)];
	uint32_t ahead = (node + s->n - before) % s->n;
	uint32_t own = (s->real[i] + s->n - before) % s->n;

	return ahead > 0 && (ahead < own || own == 0);
}

uint32_t nodes_below(const struct nodes *s, int tree, uint32_t above, uint32_t child, uint32_t *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_real; i++) {
		const struct nodes_above *a = &s->above[tree][i];

		if (a->real != above || (above != NODES_NONE && a->child != child))
			continue;
		if (ret)
			ret[n] = i;
		n++;
	}
	return n;
}
