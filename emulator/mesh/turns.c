/* See turns.h. */
#include "mesh/turns.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mesh/turns-bound.h"
#include "mesh/turns-greedy.h"
#include "mesh/turns-list.h"
#include "mesh/turns-play.h"
#include "mesh/turns-search.h"

#define SAME 1e-9 /* relative: the same times, added in another order */

const char *const turns_algo_names[TURNS_ALGOS + 1] = {
	[TURNS_NAIVE] = "naive", [TURNS_ALPA] = "alpa",     [TURNS_LB] = "lb",
	[TURNS_DFS] = "dfs",     [TURNS_GREEDY] = "greedy", [TURNS_OURS] = "ours",
	[TURNS_EXACT] = "exact",
};

/* --- the check ---------------------------------------------------------------------------- */

static int check_turn(const struct turns_task *tasks, uint32_t n, const struct turn *turn,
		      struct turns_hosts *busy, struct err *err)
{
	const struct turns_task *task = &tasks[turn->task];
	double start;

	if (turn->task >= n || turn->sender >= 64 || !(task->senders >> turn->sender & 1))
		return err_set(err, EPROTO, "task %u: host %u does not have it", turn->task,
			       turn->sender);
	start = turns_start(busy, task, turn->sender);
	if (turn->start_ns < start)
		return err_set(err, EPROTO,
			       "task %u starts at %.9g ns, where a host of it is busy until %.9g",
			       turn->task, turn->start_ns, start);
	if (fabs(turn->end_ns - turn->start_ns - task->ns) > SAME * turn->end_ns)
		return err_set(err, EPROTO, "task %u takes %.9g ns instead of %.9g", turn->task,
			       turn->end_ns - turn->start_ns, task->ns);
	turns_hold(busy, task, turn->sender, turn->end_ns);
	return 0;
}

int turns_check(const struct turns_task *tasks, uint32_t n, const struct turns *t, struct err *err)
{
	CLEANUP(freep) bool *seen = calloc(n ? n : 1, sizeof(*seen));
	struct turns_hosts busy = {{0}, {0}};
	double end = 0;
	int r = 0;

	if (!seen)
		return err_set(err, ENOMEM, "out of memory");
	if (t->n != n)
		return err_set(err, EPROTO, "%u of %u tasks have a turn", t->n, n);
	/* in the plan's order every host's tasks follow each other: sorted by time */
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = check_turn(tasks, n, &t->turns[i], &busy, err);
		if (r == 0 && seen[t->turns[i].task])
			r = err_set(err, EPROTO, "task %u has two turns", t->turns[i].task);
		if (r == 0)
			seen[t->turns[i].task] = true;
		end = t->turns[i].end_ns > end ? t->turns[i].end_ns : end;
	}
	if (r == 0 && (fabs(end - t->end_ns) > SAME * end || end < t->bound_ns * (1 - SAME)))
		r = err_set(err, EPROTO, "the plan ends at %.9g ns, not at %.9g; bound %.9g", end,
			    t->end_ns, t->bound_ns);
	return r;
}

/* --- the planners ------------------------------------------------------------------------- */

static int turns_init(struct turns *t, uint32_t n)
{
	*t = (struct turns){.n = n, .turns = calloc(n ? n : 1, sizeof(*t->turns))};
	return t->turns ? 0 : -ENOMEM;
}

void turns_deinit(struct turns *t)
{
	free(t->turns);
	t->turns = NULL;
	t->n = 0;
}

static int check_tasks(const struct turns_task *tasks, uint32_t n, struct err *err)
{
	if (n > TURNS_TASKS_MAX)
		return err_set(err, EINVAL, "%u unit tasks; 2^20 are the most", n);
	for (uint32_t i = 0; i < n; i++)
		if (!tasks[i].senders || !tasks[i].receivers || !(tasks[i].ns > 0) ||
		    !isfinite(tasks[i].ns))
			return err_set(err, EINVAL,
				       "task %u of %.9g ns has no sender, no receiver or no time",
				       i, tasks[i].ns);
	return 0;
}

static bool meets_bound(const struct turns *t)
{
	return t->end_ns <= t->bound_ns * (1 + SAME);
}

/* A search that begins at the best of what is known. */
static int search(const struct turns_task *tasks, const struct turns_effort *effort,
		  enum turns_algo by, struct turns *t)
{
	int r = meets_bound(t) ? 0 : turns_search(tasks, effort, by, t);

	if (r == 1)
		t->is_optimal = true;
	return r < 0 ? r : 0;
}

/* Keeps the better plan in @t. */
static int better_of(const struct turns_task *tasks, enum turns_algo algo,
		     const struct turns_effort *effort, struct turns *t)
{
	CLEANUP(turns_deinit) struct turns other;
	int r = turns_init(&other, t->n);

	if (r == 0 && algo == TURNS_GREEDY)
		r = turns_greedy(tasks, effort, &other);
	else if (r == 0)
		r = turns_list(tasks, algo, &other);
	if (r < 0 || other.end_ns >= t->end_ns)
		return r;
	free(t->turns);
	t->turns = steal_ptr(other.turns);
	t->end_ns = other.end_ns;
	t->by = algo;
	return 0;
}

static int ours(const struct turns_task *tasks, const struct turns_effort *effort,
		enum turns_algo by, struct turns *t)
{
	static const enum turns_algo others[] = {TURNS_LB, TURNS_GREEDY};
	int r = turns_list(tasks, TURNS_NAIVE, t);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others) && !meets_bound(t); i++)
		r = better_of(tasks, others[i], effort, t);
	return r == 0 ? search(tasks, effort, by, t) : r;
}

static int plan(const struct turns_task *tasks, enum turns_algo algo,
		const struct turns_effort *effort, struct turns *t)
{
	int r;

	switch (algo) {
	case TURNS_DFS:
		r = turns_list(tasks, TURNS_LB, t);
		return r == 0 ? search(tasks, effort, TURNS_DFS, t) : r;
	case TURNS_GREEDY:
		return turns_greedy(tasks, effort, t);
	case TURNS_OURS:
		return ours(tasks, effort, TURNS_DFS, t);
	case TURNS_EXACT:
		return ours(tasks, effort, TURNS_EXACT, t);
	case TURNS_NAIVE:
	case TURNS_ALPA:
	case TURNS_LB:
	case TURNS_ALGOS:
		break;
	}
	return turns_list(tasks, algo, t);
}

int turns_make(const struct turns_task *tasks, uint32_t n, enum turns_algo algo,
	       const struct turns_effort *effort, struct turns *ret, struct err *err)
{
	CLEANUP(turns_deinit) struct turns t = {0};
	int r = check_tasks(tasks, n, err);

	if (r < 0)
		return r;
	if (turns_init(&t, n) < 0)
		return err_set(err, ENOMEM, "no memory for %u tasks", n);
	t.bound_ns = turns_bound(tasks, n);
	r = plan(tasks, algo, effort, &t);
	if (r < 0)
		return err_set(err, -r, "no memory to plan %u tasks", n);
	t.is_optimal |= meets_bound(&t);
	r = turns_check(tasks, n, &t, err);
	if (r < 0)
		return err_prefix(err, r, "the plan of %s is wrong", turns_algo_names[algo]);
	*ret = t;
	t.turns = NULL;
	return 0;
}
