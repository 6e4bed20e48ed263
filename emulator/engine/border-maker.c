/* See border-maker.h. */
#include "engine/border-maker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

void border_maker_deinit(struct border_maker *m)
{
	free(m->in.items);
	free(m->out.items);
	free(m->dep_start);
	free(m->dep);
}

int64_t border_find(const struct border_conns *a, uint32_t src, uint32_t dst, uint16_t lane)
{
	return border_conns_find(a->items, a->n, src, dst, lane);
}

int border_add_conn(struct border_conns *a, const struct border_conn *c)
{
	if (a->n == a->room) {
		uint32_t room = a->room ? a->room * 2 : 64;
		struct border_conn *items;

		if (room < a->room)
			return -ENOMEM;
		items = realloc(a->items, room * sizeof(*items));
		if (!items)
			return -ENOMEM;
		a->items = items;
		a->room = room;
	}
	a->items[a->n++] = *c;
	return 0;
}

static int compare_conns(const void *a, const void *b)
{
	const struct border_conn *y = b;

	return border_conn_compare(a, y->src, y->dst, y->lane);
}

uint64_t border_arrange(struct border_conns *a)
{
	uint64_t bits = 0;

	if (a->n > 0)
		qsort(a->items, a->n, sizeof(*a->items), compare_conns);
	for (uint32_t i = 0; i < a->n; i++) {
		a->items[i].first_bit = bits;
		bits += a->items[i].n_messages;
	}
	return bits;
}

int border_add_dep(struct border_maker *m, uint32_t src, uint32_t dst, uint16_t lane,
		   uint64_t shift)
{
	int64_t out = border_find(&m->out, src, dst, lane);

	assert(out >= 0); /* a real rank's own connection */
	if (m->n_dep == m->dep_room) {
		uint32_t room = m->dep_room * 2;
		struct border_dep *dep;

		if (room < m->dep_room)
			return -ENOMEM;
		dep = realloc(m->dep, room * sizeof(*dep));
		if (!dep)
			return -ENOMEM;
		m->dep = dep;
		m->dep_room = room;
	}
	m->dep[m->n_dep++] = (struct border_dep){(uint32_t)out, shift};
	return 0;
}

int border_maker_finish(struct border_maker *m, border_deps *of_virtual, const void *ctx,
			struct border *ret)
{
	uint64_t n_in_messages = border_arrange(&m->in), n_out_messages = border_arrange(&m->out);
	int r = 0;

	/* never NULL, so that &dep[dep_start[i]] is sound without any */
	m->dep_room = 64;
	m->dep = calloc(m->dep_room, sizeof(*m->dep));
	m->dep_start = calloc((size_t)m->in.n + 1, sizeof(*m->dep_start));
	if (!m->dep || !m->dep_start)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < m->in.n; i++) {
		const struct border_conn *c = &m->in.items[i];

		if (border_is_real(m, c->src))
			r = border_add_dep(m, c->src, c->dst, c->lane, 0);
		else if (of_virtual)
			r = of_virtual(m, ctx, c);
		m->dep_start[i + 1] = m->n_dep;
	}
	if (r < 0)
		return r;
	*ret = (struct border){
		.n_in = m->in.n,
		.n_out = m->out.n,
		.in = steal_ptr(m->in.items),
		.out = steal_ptr(m->out.items),
		.dep_start = steal_ptr(m->dep_start),
		.dep = steal_ptr(m->dep),
		.n_in_messages = n_in_messages,
		.n_out_messages = n_out_messages,
	};
	return 0;
}
