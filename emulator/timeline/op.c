/* See timeline.h: when ops begin and end. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "timeline/node.h"

/* How much @world_rank is behind the plain time where its template was last seen: at an op's end if
 * that lies before @plain, else at its arrival. */
static double lag_of(const struct timelines *all, uint32_t world_rank, double plain)
{
	const struct timeline_node *n = all->of[all->template[world_rank]].latest;
	const struct times *x;

	if (!n)
		return 0;
	x = n->is_over && n->end.plain <= plain ? &n->end : &n->at;
	return time_of(x, all->index[world_rank]) - x->plain;
}

double timeline_arrival(const struct timeline_node *n, uint32_t world_rank)
{
	const struct timelines *all = n->of->all;

	if (&all->of[all->template[world_rank]] != n->of)
		return n->at.plain + lag_of(all, world_rank, n->at.plain);
	return time_of(&n->at, all->index[world_rank]);
}

double timeline_plain_arrival(const struct timeline_node *n)
{
	return n->at.plain;
}

double timeline_start(const struct timeline_node *n, uint32_t world_rank)
{
	const struct timelines *all = n->of->all;
	const struct timeline_node *b = n->before;
	double at = timeline_arrival(n, world_rank);

	if (!b || !b->is_over || &all->of[all->template[world_rank]] != n->of)
		return at;
	return fmax(at, time_of(&b->end, all->index[world_rank]));
}

double timeline_behind(const struct timeline_node *n, uint32_t world_rank)
{
	const struct timelines *all = n->of->all;
	const struct timeline_node *b = n->before;

	if (!b || !b->is_over || &all->of[all->template[world_rank]] != n->of)
		return INFINITY;
	return timeline_arrival(n, world_rank) - time_of(&b->end, all->index[world_rank]);
}

double timeline_window(const struct timeline_node *n)
{
	return n->window;
}

double timeline_plain_start(const struct timeline_node *n)
{
	const struct timeline_node *b = n->before;

	return b && b->is_over ? fmax(n->at.plain, b->end.plain) : n->at.plain;
}

bool timeline_is_queued(const struct timeline_node *n)
{
	return n->before && !n->before->is_over;
}

bool timeline_is_folded(const struct timeline_node *n)
{
	const struct timeline_node *b = n->before;

	return !n->at.each && !(b && b->is_over && b->end.each);
}

const uint32_t *timeline_ranks(const struct timeline_node *n, uint32_t *ret_n)
{
	*ret_n = n->of->n_ranks;
	return n->of->ranks;
}

bool timeline_lags(const struct timeline_node *n, bool is_over, double *ret)
{
	const struct times *x = is_over ? &n->end : &n->at;

	for (uint32_t i = 0; x->each && i < n->of->n_ranks; i++)
		ret[i] = x->each[i] - real_time(n, x);
	return x->each;
}

static void end(struct timeline_node *n, double plain_end)
{
	n->end.plain = n->is_over ? fmax(n->end.plain, plain_end) : plain_end;
	n->is_over = true;
	n->wall = fmax(n->reached, real_time(n, &n->end) + n->slip);
}

int timeline_end_all(struct timeline_node *n, double at, double plain_end)
{
	for (uint32_t i = 0; n->end.each && i < n->of->n_ranks; i++)
		n->end.each[i] = fmax(n->end.each[i], at);
	n->end.all = n->is_over ? fmax(n->end.all, at) : at;
	end(n, plain_end);
	return 0;
}

int timeline_end_each(struct timeline_node *n, const double *ends, double plain_end)
{
	bool had_each = n->end.each;

	if (!had_each)
		n->end.each = each_new(n->of);
	if (!n->end.each)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->of->n_ranks; i++) {
		double before = had_each ? n->end.each[i] : n->end.all;

		n->end.each[i] = n->is_over ? fmax(before, ends[i]) : ends[i];
	}
	times_fold(n->of, &n->end);
	end(n, plain_end);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct timeline_node *const *x = a, *const *y = b;

	return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static void shift(struct timeline_node *n, bool is_plain, double ns)
{
	if (is_plain) {
		n->at.plain += ns;
		return;
	}
	for (uint32_t i = 0; n->at.each && i < n->of->n_ranks; i++)
		n->at.each[i] += ns;
	n->at.all += ns;
}

static bool waits_for_moved(const struct timeline_node *n)
{
	struct timeline_node *dep;

	for (size_t i = 0; i < n->n_deps; i++) {
		HASH_FIND(hh, n->of->by_name, &n->deps[i], sizeof(n->deps[i]), dep);
		if (dep && dep->is_moved)
			return true;
	}
	HASH_FIND(hh, n->of->by_name, &n->host, sizeof(n->host), dep);
	return dep && dep->is_moved;
}

/* What has waited for @moved is as much later, at most. Without memory it is not. */
static void carry(struct timeline_node *moved, bool is_plain, double ns)
{
	struct timeline *t = moved->of;
	struct timeline_node **later = malloc(t->n_nodes * sizeof(struct timeline_node *)), *n,
			     *next;
	uint32_t n_later = 0;

	if (!later)
		return;
	HASH_ITER(hh, t->by_name, n, next)
		if (n->number > moved->number)
			later[n_later++] = n;
	qsort(later, n_later, sizeof(later[0]), by_number);
	moved->is_moved = true;
	for (uint32_t i = 0; i < n_later; i++) {
		if (!waits_for_moved(later[i]))
			continue;
		shift(later[i], is_plain, ns);
		later[i]->is_moved = !later[i]->is_over; /* an end is known by itself */
	}
	moved->is_moved = false;
	for (uint32_t i = 0; i < n_later; i++)
		later[i]->is_moved = false;
	free(later);
}

double timeline_real_end(const struct timeline_node *n, bool is_plain)
{
	return is_plain ? n->end.plain : real_time(n, &n->end);
}

double timeline_move_end(struct timeline_node *n, bool is_plain,
			 double (*moved)(void *ctx, double end), void *ctx)
{
	double before = timeline_real_end(n, is_plain), ns;

	if (is_plain) {
		n->end.plain = moved(ctx, n->end.plain);
	} else {
		for (uint32_t i = 0; n->end.each && i < n->of->n_ranks; i++)
			n->end.each[i] = moved(ctx, n->end.each[i]);
		n->end.all = moved(ctx, n->end.all);
		if (!n->is_open)
			n->wall = fmax(n->reached, real_time(n, &n->end) + n->slip);
	}
	ns = timeline_real_end(n, is_plain) - before;
	if (n->is_used)
		carry(n, is_plain, ns);
	return n->is_open ? ns : 0;
}

struct timeline_times timeline_end(const struct timeline_node *n)
{
	return (struct timeline_times){
		.time_ns = ns_of(n->of->all, real_time(n, &n->end)),
		.plain_ns = ns_of(n->of->all, n->end.plain),
	};
}

uint64_t timeline_due_ns(const struct timeline_node *n)
{
	return ns_of(n->of->all, real_time(n, &n->end) + n->slip);
}

void timeline_opened(struct timeline_node *n, uint64_t wall_ns)
{
	double wall = wall_of(n->of->all, wall_ns);

	n->is_open = true;
	if (fabs(wall - n->wall) >= 1) /* less is what rounding up has added */
		n->wall = fmax(n->reached, wall);
}
