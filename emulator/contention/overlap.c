/* See overlap.h. */
#include "contention/overlap.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOVED_NS 1e-3 /* less is what sums of doubles are wrong by */

struct member {
	double start, solo_ns;
	struct usage *usage; /* a reference, or NULL */
	void *tag;           /* NULL: nobody is told */
	struct warp warp;
	struct warp from; /* before it was replayed */
	/* while it is replayed */
	bool is_replayed;
	double done, speed;
};

struct overlap {
	struct member *members; /* owned, by start; the earlier told first */
	struct rates rates;
	/* of a set */
	struct rate_op *ops;
	double *speeds;
	uint32_t *live;
	uint32_t n, capacity;
};

int overlap_new(struct overlap **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void member_deinit(struct member *m)
{
	usage_unref(m->usage);
	warp_deinit(&m->warp);
	warp_deinit(&m->from);
}

struct overlap *overlap_free(struct overlap *o)
{
	if (o) {
		for (uint32_t i = 0; i < o->n; i++)
			member_deinit(&o->members[i]);
		free(o->members);
		rates_deinit(&o->rates);
		free(o->ops);
		free(o->speeds);
		free(o->live);
		free(o);
	}
	return NULL;
}

static void drop(struct overlap *o, uint32_t i)
{
	member_deinit(&o->members[i]);
	memmove(&o->members[i], &o->members[i + 1], (o->n - i - 1) * sizeof(*o->members));
	o->n--;
}

/* Forgets the op that was over first, if it was over by @start. */
static void forget_one(struct overlap *o, double start)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < o->n; i++)
		if (warp_end(&o->members[i].warp) < warp_end(&o->members[first].warp))
			first = i;
	if (warp_end(&o->members[first].warp) <= start)
		drop(o, first);
}

static int grow(struct overlap *o)
{
	uint32_t capacity = o->capacity ? 2 * o->capacity : OVERLAP_KEPT;
	struct member *members = realloc(o->members, capacity * sizeof(*members));
	struct rate_op *ops;
	double *speeds;
	uint32_t *live;

	if (members)
		o->members = members;
	ops = realloc(o->ops, capacity * sizeof(*ops));
	if (ops)
		o->ops = ops;
	speeds = realloc(o->speeds, capacity * sizeof(*speeds));
	if (speeds)
		o->speeds = speeds;
	live = realloc(o->live, capacity * sizeof(*live));
	if (live)
		o->live = live;
	if (!members || !ops || !speeds || !live)
		return -ENOMEM;
	o->capacity = capacity;
	return 0;
}

/* Those that go on after @t begin again there, as far as they were. */
static int rewind_to(struct overlap *o, double t)
{
	int r = 0;

	for (uint32_t i = 0; i < o->n && r == 0; i++) {
		struct member *m = &o->members[i];

		m->is_replayed = !m->warp.n || warp_end(&m->warp) > t;
		if (!m->is_replayed)
			continue;
		m->from.n = 0;
		for (uint32_t k = 0; k < m->warp.n && r == 0; k++)
			r = warp_bend(&m->from, m->warp.bends[k].at, m->warp.bends[k].done);
		if (r == 0 && m->start >= t) {
			m->warp.n = 0;
			r = warp_bend(&m->warp, m->start, 0);
		} else if (r == 0) {
			r = warp_cut(&m->warp, t);
		}
		if (r == 0)
			m->done = m->warp.bends[m->warp.n - 1].done;
		m->speed = -1; /* not known: the next one makes a bend */
	}
	return r;
}

/* The ops that are alive at @t. Return: their number; *ret_next: when the next one begins. */
static uint32_t find_live(struct overlap *o, double t, double *ret_next)
{
	uint32_t n = 0;

	*ret_next = INFINITY;
	for (uint32_t i = 0; i < o->n; i++) {
		const struct member *m = &o->members[i];

		if (!m->is_replayed)
			continue;
		if (m->start > t) {
			*ret_next = m->start;
			break;
		}
		o->ops[n] = (struct rate_op){m->usage, m->solo_ns};
		o->live[n++] = i;
	}
	return n;
}

/* All of the set go on to @t; those that are over by then have ended. */
static int advance(struct overlap *o, uint32_t n, double from, double t)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct member *m = &o->members[o->live[i]];
		double end = from + (m->solo_ns - m->done) / o->speeds[i];

		if (o->speeds[i] != m->speed && m->speed >= 0)
			r = warp_bend(&m->warp, from, m->done);
		m->speed = o->speeds[i];
		m->done += o->speeds[i] * (t - from);
		m->is_replayed = end > t;
		if (r == 0 && !m->is_replayed)
			r = warp_bend(&m->warp, end, m->solo_ns);
	}
	return r;
}

static int replay(struct overlap *o, double t)
{
	int r = rewind_to(o, t);

	while (r == 0) {
		double next;
		uint32_t n = find_live(o, t, &next);
		double until = next;

		if (n == 0 && isinf(next))
			break;
		r = n ? rates_find(&o->rates, o->ops, n, o->speeds) : 0;
		for (uint32_t i = 0; i < n && r == 0; i++) {
			const struct member *m = &o->members[o->live[i]];

			until = fmin(until, t + (m->solo_ns - m->done) / o->speeds[i]);
		}
		if (r == 0)
			r = advance(o, n, t, until);
		t = until;
	}
	return r;
}

static void tell(const struct overlap *o, const struct member *new, const struct overlap_sink *sink)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct member *m = &o->members[i];

		if (m == new || !m->from.n)
			continue;
		if (m->tag && fabs(warp_end(&m->warp) - warp_end(&m->from)) > MOVED_NS)
			sink->moved(sink->ctx, m->tag, &m->from, &m->warp);
		m->from.n = 0;
	}
}

int overlap_add(struct overlap *o, struct usage *usage, double start, double solo_ns, void *tag,
		const struct overlap_sink *sink, const struct warp **ret)
{
	struct member *m;
	int r = 0;

	if (o->n >= OVERLAP_KEPT)
		forget_one(o, start);
	if (o->n == o->capacity)
		r = grow(o);
	if (r)
		return r;
	m = &o->members[o->n];
	while (m > o->members && m[-1].start > start)
		m--;
	memmove(m + 1, m, (size_t)(&o->members[o->n] - m) * sizeof(*m));
	*m = (struct member){.start = start,
			     .solo_ns = solo_ns,
			     .usage = usage ? usage_ref(usage) : NULL,
			     .tag = tag};
	o->n++;
	r = replay(o, start);
	if (r)
		return r;
	tell(o, m, sink);
	*ret = &m->warp;
	return 0;
}

void overlap_forget(struct overlap *o, const void *tag)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->members[i].tag == tag)
			o->members[i].tag = NULL;
}
