/* See overlap.h. */
#include "contention/overlap.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct member {
	struct overlap_op op; /* its usage is a reference */
	uint64_t number;
	double after_done; /* of op.after, where this one begins */
	struct warp warp;  /* empty: it has not begun */
	/* before it was replayed: from its bend @first on, what lies before that stays */
	struct warp from;
	uint32_t first;
	/* while it is replayed */
	bool is_replayed;
	double done, speed;
};

struct condition {
	struct rate_op as; /* its usage: a reference */
	double from, until;
	double every; /* it begins again so much later; 0: it does not */
	bool is_met;  /* an op used its links meanwhile */
};

struct overlap {
	struct overlap_sink sink;
	struct member *members;       /* owned, by op.start; the earlier told first */
	struct condition *conditions; /* owned */
	struct rates rates;
	uint64_t n_told;
	struct rate_peak peak;
	/* of a set */
	struct rate_op *ops;
	double *speeds;
	uint32_t *live;
	uint32_t n, capacity, n_conditions;
};

/* Less is what sums of doubles are wrong by at @t: two times of a run of 5 hours are equal, or 4e-3
 * apart. */
static double rounding_ns(double t)
{
	return fmax(1e-3, 4 * DBL_EPSILON * t);
}

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
		for (uint32_t i = 0; i < o->n_conditions; i++)
			usage_unref(o->conditions[i].as.usage);
		free(o->members);
		free(o->conditions);
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

/* Who has waited for @m begins no earlier than now, whatever is replayed. */
static void leave_queue(struct overlap *o, const struct member *m)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct member *w = &o->members[i];

		if (w->op.after != m->number)
			continue;
		w->op.after = 0;
		w->op.begin = w->warp.bends[0].at;
	}
}

/* Forgets the op that was over first, if it was over by @start. Return: whether it was. */
static bool forget_one(struct overlap *o, double start)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < o->n; i++)
		if (warp_end(&o->members[i].warp) < warp_end(&o->members[first].warp))
			first = i;
	if (warp_end(&o->members[first].warp) > start)
		return false;
	leave_queue(o, &o->members[first]);
	o->sink.forgotten(o->sink.ctx, o->members[first].op.tag);
	drop(o, first);
	return true;
}

/* Room for @capacity ops, and a set of these and of all conditions. */
static int grow(struct overlap *o, uint32_t capacity)
{
	uint32_t n = capacity + o->n_conditions;
	struct member *members = realloc(o->members, capacity * sizeof(*members));
	struct rate_op *ops;
	double *speeds;
	uint32_t *live;

	if (members)
		o->members = members;
	ops = realloc(o->ops, n * sizeof(*ops));
	if (ops)
		o->ops = ops;
	speeds = realloc(o->speeds, n * sizeof(*speeds));
	if (speeds)
		o->speeds = speeds;
	live = realloc(o->live, n * sizeof(*live));
	if (live)
		o->live = live;
	if (!members || !ops || !speeds || !live)
		return -ENOMEM;
	o->capacity = capacity;
	return 0;
}

int overlap_condition(struct overlap *o, struct usage *usage, enum rate_kind kind, double from,
		      double until)
{
	struct condition *more =
		realloc(o->conditions, (o->n_conditions + 1) * sizeof(*o->conditions));

	if (!more)
		return -ENOMEM;
	o->conditions = more;
	more[o->n_conditions++] =
		(struct condition){.as = {usage_ref(usage), 1, kind}, .from = from, .until = until};
	return grow(o, o->capacity ? o->capacity : OVERLAP_KEPT);
}

void overlap_repeat(struct overlap *o, uint32_t i, double every)
{
	o->conditions[i].every = every;
}

bool overlap_is_met(const struct overlap *o, uint32_t i)
{
	return o->conditions[i].is_met;
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
		m->first = m->warp.n ? warp_before(&m->warp, t) : 0;
		for (uint32_t k = m->first; k < m->warp.n && r == 0; k++)
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
	bool is_next = m > o->members && m[-1].number == m->op.after; /* as in a long queue */
	const struct member *before = is_next ? m - 1 : member_of(o, m->op.after);

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
			*ret_next = fmin(*ret_next, m->op.start);
			break;
		}
		if (!m->warp.n && !m->op.after && m->op.begin > t) {
			*ret_next = fmin(*ret_next, m->op.begin);
			continue;
		}
		if (!m->warp.n && queued_ns(o, m) > rounding_ns(t))
			continue;
		if (!m->warp.n)
			r = warp_bend(&m->warp, t, 0);
		o->ops[n] = (struct rate_op){.usage = m->op.usage, .solo_ns = m->op.solo_ns};
		o->live[n++] = i;
	}
	*ret_n = n;
	return r;
}

/* Behind the @n ops, the conditions that hold at @t. Return: the number of all; *next: no later
 * than when that changes. */
static uint32_t add_conditions(struct overlap *o, uint32_t n, double t, double *next)
{
	for (uint32_t i = 0; i < o->n_conditions; i++) {
		const struct condition *c = &o->conditions[i];
		double from = c->from, until = c->until;

		if (c->every > 0 && t >= until) { /* the time that is not over yet */
			from += (floor((t - until) / c->every) + 1) * c->every;
			until = from + (c->until - c->from);
			if (until <= t) { /* rounded */
				from += c->every;
				until += c->every;
			}
		}
		if (from > t)
			*next = fmin(*next, from);
		if (from > t || until <= t)
			continue;
		*next = fmin(*next, until);
		o->ops[n] = c->as;
		o->live[n++] = i;
	}
	return n;
}

/* When so much more is done of what goes on at @speed from @t on; never, while that is 0. */
static double time_of(double left_ns, double t, double speed)
{
	if (!(left_ns > 0))
		return t;
	return speed > 0 ? t + left_ns / speed : INFINITY;
}

/* The bend where it was cut is none if it goes on as before. */
static void straighten(struct warp *w, double speed)
{
	const struct warp_bend *b = &w->bends[w->n - 1];

	if (w->n > 1 &&
	    fabs(b[-1].done + speed * (b->at - b[-1].at) - b->done) < rounding_ns(b->at))
		w->n--;
}

/* All of the set go on to @t; those that are over by then have ended. */
static int advance(struct overlap *o, uint32_t n, double from, double t)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct member *m = &o->members[o->live[i]];
		double end = time_of(m->op.solo_ns - m->done, from, o->speeds[i]);

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

		next = fmin(next, time_of(m->op.solo_ns - m->done, t, o->speeds[i]));
		for (uint32_t k = 0; k < o->n; k++) {
			const struct member *w = &o->members[k];

			/* what is done but for rounding needs no bend: it waits for its start */
			if (w->is_replayed && !w->warp.n && w->op.after == m->number &&
			    w->after_done - m->done > rounding_ns(t))
				next = fmin(next,
					    time_of(w->after_done - m->done, t, o->speeds[i]));
		}
	}
	return next;
}

/* From @t, with the @n ops of the set, to when the set changes. Return: 0; -ENOMEM. */
static int step(struct overlap *o, uint32_t n, double next, double *t)
{
	uint32_t n_all = add_conditions(o, n, *t, &next);
	double from = *t;
	int r = rates_find(&o->rates, o->ops, n_all, o->speeds);

	if (r)
		return r;
	if (o->rates.peak.load > o->peak.load)
		o->peak = o->rates.peak;
	for (uint32_t i = n; i < n_all; i++)
		o->conditions[o->live[i]].is_met |= o->speeds[i] > 0;
	*t = fmin(next, next_bend(o, from, n));
	return advance(o, n, from, *t);
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
		if (n)
			r = step(o, n, next, &t);
		else
			t = next;
	}
	return r;
}

static bool is_same(const struct warp *a, const struct warp *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++) {
		double wrong = rounding_ns(a->bends[i].at);

		if (fabs(a->bends[i].at - b->bends[i].at) > wrong ||
		    fabs(a->bends[i].done - b->bends[i].done) > wrong)
			return false;
	}
	return a->n == b->n;
}

static void tell(const struct overlap *o, const struct member *new)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct member *m = &o->members[i];
		const struct warp to = {m->warp.bends + m->first, m->warp.n - m->first, 0};

		if (m != new && m->from.n && !is_same(&m->from, &to))
			o->sink.moved(o->sink.ctx, m->op.tag, &m->from, &to);
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

	/* not by @op->begin: what lies ahead in a long queue is not over for others */
	while (o->n >= OVERLAP_KEPT && forget_one(o, op->start))
		;
	if (o->n == o->capacity)
		r = grow(o, o->capacity ? 2 * o->capacity : OVERLAP_KEPT);
	if (r)
		return r;
	before = member_of(o, op->after);
	if (!before || op->begin > warp_end(&before->warp) + rounding_ns(op->begin))
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
	o->peak = (struct rate_peak){0};
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

int overlap_change(struct overlap *o, uint32_t i, double since, double from, double until)
{
	int r;

	o->conditions[i].from = from;
	o->conditions[i].until = until;
	r = replay(o, since);
	if (r)
		forget_all(o);
	else
		tell(o, NULL);
	return r;
}

const struct warp *overlap_warp(struct overlap *o, uint64_t number)
{
	const struct member *m = member_of(o, number);

	return m ? &m->warp : NULL;
}

double overlap_end(struct overlap *o, uint64_t number)
{
	const struct warp *w = overlap_warp(o, number);

	return w ? warp_end(w) : -INFINITY;
}

struct rate_peak overlap_peak(const struct overlap *o)
{
	return o->peak;
}

int overlap_alone(struct overlap *o, struct usage *usage, double start, double solo_ns,
		  double *ret_later_ns)
{
	double t = start, end, left_ns = solo_ns;
	int r = o->capacity ? 0 : grow(o, OVERLAP_KEPT);

	if (r)
		return r;
	for (;;) {
		double next = INFINITY;
		uint32_t n;

		o->ops[0] = (struct rate_op){.usage = usage, .solo_ns = solo_ns};
		n = add_conditions(o, 1, t, &next);
		r = rates_find(&o->rates, o->ops, n, o->speeds);
		if (r)
			return r;
		end = time_of(left_ns, t, o->speeds[0]);
		if (end <= next)
			break;
		left_ns -= o->speeds[0] * (next - t);
		t = next;
	}
	end -= start + solo_ns;
	*ret_later_ns = end > rounding_ns(start) ? end : 0;
	return 0;
}
