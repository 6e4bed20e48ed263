/* See turns-search.h. A branch of the tree is which task starts next, and its sender. Some plan
 * that ends first has these properties, and others are not looked at:
 *
 *   - tasks are taken in the order in which they start, and start as soon as their hosts are free;
 *   - none that is still to come could be over when the next one starts: it would have gone first,
 *     and nobody would have started later;
 *   - alike tasks (same hosts, same time) are taken in their own order.
 *
 * Below a node no plan ends before what a host still has to receive, or what only some senders can
 * send, shared evenly and no task cut, has passed since they are free; none is free before the last
 * task started.
 */
#include "mesh/turns-search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mesh/turns-play.h"

#define BRANCHES_MAX (1 << 22) /* of all depths together */
#define TOO_MANY 1
#define SETS 64        /* of senders, that bounds look at */
#define ASK_EVERY 256  /* nodes */
#define SLIGHTLY 1e-12 /* relative: sums of the same times in another order */

struct kind { /* alike tasks */
	struct turns_task task;
	uint32_t n, n_left;
	uint32_t first; /* into members */
};

struct branch {
	double start;
	uint32_t kind, sender;
};

struct search {
	const struct turns_effort *effort;
	uint64_t nodes;
	bool is_cut_off;

	struct kind *kinds; /* owned */
	uint32_t n_kinds, n;
	uint32_t *members;       /* owned; tasks, kind by kind */
	struct branch *branches; /* owned; for each depth n_branches */
	uint32_t n_branches;
	struct turn *path;        /* owned */
	uint64_t sets[SETS];      /* of senders */
	double set_left[SETS];    /* what only they can send */
	double set_least[SETS];   /* the shortest such task */
	uint32_t set_n[SETS];     /* how many are left */
	double receiver_left[64]; /* what each has to receive */
	uint32_t n_sets;
	uint64_t receivers;
	struct turns *best;
};

static void search_deinit(struct search *s)
{
	free(s->kinds);
	free(s->members);
	free(s->branches);
	free(s->path);
}

/* --- making it ---------------------------------------------------------------------------- */

static int by_kind(const void *a, const void *b, void *tasks)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct turns_task *x = (const struct turns_task *)tasks + i;
	const struct turns_task *y = (const struct turns_task *)tasks + j;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->senders != y->senders)
		return x->senders < y->senders ? -1 : 1;
	if (x->receivers != y->receivers)
		return x->receivers < y->receivers ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool is_alike(const struct turns_task *x, const struct turns_task *y)
{
	return x->ns == y->ns && x->senders == y->senders && x->receivers == y->receivers;
}

static void add_set(struct search *s, uint64_t senders)
{
	for (uint32_t i = 0; i < s->n_sets; i++)
		if (s->sets[i] == senders)
			return;
	if (s->n_sets < SETS)
		s->sets[s->n_sets++] = senders;
}

static void find_least(struct search *s, const struct turns_task *task)
{
	for (uint32_t i = 0; i < s->n_sets; i++)
		if ((task->senders & ~s->sets[i]) == 0 &&
		    (s->set_least[i] == 0 || task->ns < s->set_least[i]))
			s->set_least[i] = task->ns;
}

/* Counts @times of a kind as still to be done. */
static void count(struct search *s, const struct turns_task *task, int times)
{
	for (uint32_t i = 0; i < s->n_sets; i++) {
		if (task->senders & ~s->sets[i])
			continue;
		s->set_left[i] += times * task->ns;
		s->set_n[i] += (uint32_t)times;
	}
	for (uint64_t hosts = task->receivers; hosts;)
		s->receiver_left[turns_take_host(&hosts)] += times * task->ns;
}

static void find_kinds(struct search *s, const struct turns_task *tasks)
{
	uint64_t senders = 0;

	for (uint32_t i = 0; i < s->n; i++)
		s->members[i] = i;
	/* the comparison reads the tasks only */
	qsort_r(s->members, s->n, sizeof(*s->members), by_kind, (void *)(uintptr_t)tasks);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct turns_task *task = &tasks[s->members[i]];

		if (i == 0 || !is_alike(task, &s->kinds[s->n_kinds - 1].task)) {
			s->kinds[s->n_kinds++] = (struct kind){.task = *task, .first = i};
			s->n_branches += (uint32_t)__builtin_popcountll(task->senders);
		}
		s->kinds[s->n_kinds - 1].n++;
		s->kinds[s->n_kinds - 1].n_left++;
		senders |= task->senders;
		s->receivers |= task->receivers;
	}
	add_set(s, senders);
	for (uint32_t i = 0; i < s->n_kinds; i++)
		add_set(s, s->kinds[i].task.senders);
	for (uint32_t i = 0; i < s->n_kinds; i++) {
		find_least(s, &s->kinds[i].task);
		count(s, &s->kinds[i].task, (int)s->kinds[i].n);
	}
}

/* Return: 0; TOO_MANY; -ENOMEM. */
static int search_init(struct search *s, const struct turns_task *tasks,
		       const struct turns_effort *effort, struct turns *best)
{
	*s = (struct search){.effort = effort, .best = best, .n = best->n};
	s->kinds = malloc(s->n * sizeof(*s->kinds));
	s->members = malloc(s->n * sizeof(*s->members));
	s->path = malloc(s->n * sizeof(*s->path));
	if (!s->kinds || !s->members || !s->path)
		return -ENOMEM;
	find_kinds(s, tasks);
	if ((uint64_t)s->n * s->n_branches > BRANCHES_MAX)
		return TOO_MANY;
	s->branches = malloc((size_t)s->n * s->n_branches * sizeof(*s->branches));
	return s->branches ? 0 : -ENOMEM;
}

/* --- searching ---------------------------------------------------------------------------- */

static bool is_better(const struct search *s, double end)
{
	return end < s->best->end_ns * (1 - SLIGHTLY);
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* Whether something better than the best may lie below. @now: the last task started then. */
static bool may_win(const struct search *s, const struct turns_hosts *h, double now, double end)
{
	if (!is_better(s, end))
		return false;
	for (uint64_t hosts = s->receivers; hosts;) {
		uint32_t i = turns_take_host(&hosts);

		if (s->receiver_left[i] > 0 &&
		    !is_better(s, later(h->receivers[i], now) + s->receiver_left[i]))
			return false;
	}
	for (uint32_t i = 0; i < s->n_sets; i++) {
		double sum = s->set_left[i], first = INFINITY;
		uint32_t n = (uint32_t)__builtin_popcountll(s->sets[i]);

		if (!s->set_n[i])
			continue;
		for (uint64_t hosts = s->sets[i]; hosts;) {
			double at = later(h->senders[turns_take_host(&hosts)], now);

			sum += at;
			first = fmin(first, at);
		}
		if (!is_better(s, sum / n) ||
		    !is_better(s, first + (s->set_n[i] + n - 1) / n * s->set_least[i]))
			return false;
	}
	return true;
}

static int earliest_first(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->kind != y->kind) /* the longest have the lowest numbers */
		return x->kind < y->kind ? -1 : 1;
	return x->sender < y->sender ? -1 : x->sender > y->sender;
}

/* Return: how many. */
static uint32_t find_branches(const struct search *s, const struct turns_hosts *h, double now,
			      struct branch *ret)
{
	double over = INFINITY; /* when one of them could be */
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < s->n_kinds; i++) {
		const struct turns_task *task = &s->kinds[i].task;

		if (!s->kinds[i].n_left)
			continue;
		for (uint64_t hosts = task->senders; hosts;) {
			struct branch b = {.kind = i, .sender = turns_take_host(&hosts)};

			b.start = turns_start(h, task, b.sender);
			over = b.start + task->ns < over ? b.start + task->ns : over;
			ret[n++] = b;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		if (ret[i].start >= now && ret[i].start < over)
			ret[kept++] = ret[i];
	qsort(ret, kept, sizeof(*ret), earliest_first);
	return kept;
}

static void keep(struct search *s, double end)
{
	memcpy(s->best->turns, s->path, s->n * sizeof(*s->path));
	s->best->end_ns = end;
}

static void descend(struct search *s, const struct turns_hosts *h, uint32_t depth, double now,
		    double end)
{
	struct branch *branches = s->branches + (size_t)depth * s->n_branches;
	uint32_t n;

	if (depth == s->n) {
		keep(s, end);
		return;
	}
	n = find_branches(s, h, now, branches);
	for (uint32_t i = 0; i < n && !s->is_cut_off; i++) {
		struct kind *kind = &s->kinds[branches[i].kind];
		double over = branches[i].start + kind->task.ns;
		struct turns_hosts below = *h;

		if (++s->nodes > s->effort->nodes ||
		    (s->nodes % ASK_EVERY == 0 && s->effort->is_over &&
		     s->effort->is_over(s->effort->who))) {
			s->is_cut_off = true;
			return;
		}
		turns_hold(&below, &kind->task, branches[i].sender, over);
		s->path[depth] = (struct turn){
			.task = s->members[kind->first + kind->n - kind->n_left],
			.sender = branches[i].sender,
		};
		kind->n_left--;
		count(s, &kind->task, -1);
		if (may_win(s, &below, branches[i].start, later(end, over)))
			descend(s, &below, depth + 1, branches[i].start, later(end, over));
		count(s, &kind->task, 1);
		kind->n_left++;
	}
}

int turns_search(const struct turns_task *tasks, const struct turns_effort *effort,
		 enum turns_algo by, struct turns *t)
{
	CLEANUP(search_deinit) struct search s = {0};
	struct turns_hosts hosts = {{0}, {0}};
	double before = t->end_ns;
	int r;

	if (t->n == 0 || t->n > TURNS_SEARCH_MAX)
		return 0;
	r = search_init(&s, tasks, effort, t);
	if (r)
		return r == TOO_MANY ? 0 : r;
	descend(&s, &hosts, 0, 0, 0);
	if (t->end_ns < before) {
		turns_play(tasks, t);
		t->by = by;
	}
	return !s.is_cut_off;
}
