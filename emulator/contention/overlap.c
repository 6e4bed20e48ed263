/* See overlap.h. */
#include "contention/overlap.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOVED_NS 1e-3 /* less is what sums of doubles are wrong by */

struct member {
	struct overlap_op op; /* its usage is a reference */
	uint64_t number;
	double after_done; /* of op.after, where this one begins */
	struct warp warp;  /* empty: it has not begun */
	struct warp from;  /* before it was replayed */
	/* while it is replayed */
	bool is_replayed;
	double done, speed;
};

struct overlap {
	struct overlap_sink sink;
	struct member *members; /* owned, by op.start; the earlier told first */
	struct rates rates;
	uint64_t n_told;
	/* of a set */
	struct rate_op *ops;
	double *speeds;
	uint32_t *live;
	uint32_t n, capacity;
};

int overlap_new(const struct overlap_sink *sink, struct overlap **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->sink = *sink;
	return 0;
}

static void member_deinit(struct member *m)
{
	usage_unref(m->op.usage);
	warp_deinit(&m->warp);
	warp_deinit(&m->from);
}

static void forget_all(struct overlap *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		o->sink.forgotten(o->sink.ctx, o->members[i].op.tag);
		member_deinit(&o->members[i]);
	}
	o->n = 0;
}

struct overlap *overlap_free(struct overlap *o)
{
	if (o) {
		forget_all(o);
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
	if (warp_end(&o->members[first].warp) > start)
		return;
	o->sink.forgotten(o->sink.ctx, o->members[first].op.tag);
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
		if (r == 0 && m->warp.n && m->warp.bends[0].at < t) {
			r = warp_cut(&m->warp, t);
			m->done = m->warp.bends[m->warp.n - 1].done;
		} else {
			m->warp.n = 0;
			m->done = 0;
		}
		m->speed = -1; /* not known: the next one makes a bend */
	}
	return r;
}

static struct member *member_of(struct overlap *o, uint64_t number)
{
	for (uint32_t i = 0; i < o->n && number; i++)
		if (o->members[i].number == number)
			return &o->members[i];
	return NULL;
}

/* How much of another op has to be done before @m begins; 0: nothing. */
static double queued_ns(struct overlap *o, const struct member *m)
{
	const struct member *before = member_of(o, m->op.after);

	return before && before->is_replayed ? m->after_done - before->done : 0;
}

/* The ops that are alive at @t; those that may begin do. *ret_next: when the next one comes.
 * Return: 0; -ENOMEM. */
static int find_live(struct overlap *o, double t, uint32_t *ret_n, double *ret_next)
{
	uint32_t n = 0;
	int r = 0;

	*ret_next = INFINITY;
	for (uint32_t i = 0; i < o->n && r == 0; i++) {
		struct member *m = &o->members[i];

		if (!m->is_replayed)
			continue;
		if (m->op.start > t) {
			*ret_next = m->op.start;
			break;
		}
		if (!m->warp.n && queued_ns(o, m) > MOVED_NS)
			continue;
		if (!m->warp.n)
			r = warp_bend(&m->warp, t, 0);
		o->ops[n] = (struct rate_op){m->op.usage, m->op.solo_ns};
		o->live[n++] = i;
	}
	*ret_n = n;
	return r;
}

/* The bend where it was cut is none if it goes on as before. */
static void straighten(struct warp *w, double speed)
{
	const struct warp_bend *b = &w->bends[w->n - 1];

	if (w->n > 1 && fabs(b[-1].done + speed * (b->at - b[-1].at) - b->done) < MOVED_NS)
		w->n--;
}

/* All of the set go on to @t; those that are over by then have ended. */
static int advance(struct overlap *o, uint32_t n, double from, double t)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct member *m = &o->members[o->live[i]];
		double end = from + (m->op.solo_ns - m->done) / o->speeds[i];

		if (m->speed < 0)
			straighten(&m->warp, o->speeds[i]);
		else if (o->speeds[i] != m->speed)
			r = warp_bend(&m->warp, from, m->done);
		m->speed = o->speeds[i];
		m->done += o->speeds[i] * (t - from);
		m->is_replayed = end > t;
		if (r == 0 && !m->is_replayed)
			r = warp_bend(&m->warp, end, m->op.solo_ns);
	}
	return r;
}

/* When the first of the @n that are alive is over, or as far as one that waits needs it. */
static double next_bend(struct overlap *o, double t, uint32_t n)
{
	double next = INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		const struct member *m = &o->members[o->live[i]];

		next = fmin(next, t + (m->op.solo_ns - m->done) / o->speeds[i]);
		for (uint32_t k = 0; k < o->n; k++) {
			const struct member *w = &o->members[k];

			if (w->is_replayed && !w->warp.n && w->op.after == m->number)
				next = fmin(next, t + (w->after_done - m->done) / o->speeds[i]);
		}
	}
	return next;
}

static int replay(struct overlap *o, double t)
{
	int r = rewind_to(o, t);

	while (r == 0) {
		double next;
		uint32_t n;

		r = find_live(o, t, &n, &next);
		if (r < 0 || (n == 0 && isinf(next)))
			break;
		r = n ? rates_find(&o->rates, o->ops, n, o->speeds) : 0;
		if (r == 0) {
			next = fmin(next, next_bend(o, t, n));
			r = advance(o, n, t, next);
		}
		t = next;
	}
	return r;
}

static bool is_same(const struct warp *a, const struct warp *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (fabs(a->bends[i].at - b->bends[i].at) > MOVED_NS ||
		    fabs(a->bends[i].done - b->bends[i].done) > MOVED_NS)
			return false;
	return a->n == b->n;
}

static void tell(const struct overlap *o, const struct member *new)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct member *m = &o->members[i];

		if (m != new && m->from.n && !is_same(&m->from, &m->warp))
			o->sink.moved(o->sink.ctx, m->op.tag, &m->from, &m->warp);
		m->from.n = 0;
	}
}

int overlap_add(struct overlap *o, const struct overlap_op *op, uint64_t *ret_number,
		const struct warp **ret)
{
	struct member made = {.op = *op, .number = ++o->n_told};
	const struct member *before;
	struct member *m;
	int r = 0;

	if (o->n >= OVERLAP_KEPT)
		forget_one(o, op->begin);
	if (o->n == o->capacity)
		r = grow(o);
	if (r)
		return r;
	before = member_of(o, op->after);
	if (!before || op->begin > warp_end(&before->warp) + MOVED_NS)
		made.op.start = op->begin;
	if (before)
		made.after_done = warp_done(&before->warp, op->begin);
	if (op->usage)
		usage_ref(op->usage);
	m = &o->members[o->n++];
	while (m > o->members && m[-1].op.start > made.op.start) {
		*m = m[-1];
		m--;
	}
	*m = made;
	r = replay(o, op->begin);
	if (r) {
		forget_all(o);
		return r;
	}
	tell(o, m);
	*ret_number = m->number;
	*ret = &m->warp;
	return 0;
}
