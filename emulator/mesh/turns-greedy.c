/* See turns-greedy.h. What is left is one list, which each try shuffles as far as it looks: until
 * all senders or all receivers are busy. */
#include "mesh/turns-greedy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "mesh/turns-play.h"

#define TRIES 100

/* A set of tasks that go at once, and what its senders have to send with it. */
struct round {
	struct turn turns[64]; /* a host sends one of them */
	uint32_t n;
	double load[64], spread;
};

struct greedy {
	const struct turns_task *tasks;
	uint64_t seed, draws;
	uint64_t senders, receivers; /* hosts of any task */
	uint32_t *left, n_left;      /* owned */
	uint32_t *place;             /* owned; of each task in it */
	double load[64], mean_ns;
};

static void greedy_deinit(struct greedy *g)
{
	free(g->left);
	free(g->place);
}

/* Below @n. */
static uint32_t draw(struct greedy *g, uint32_t n)
{
	return (uint32_t)((rng_hash(g->seed, g->draws++) >> 32) * n >> 32);
}

/* One of @senders by chance: the less it has to send, the likelier. */
static uint32_t draw_sender(struct greedy *g, uint64_t senders, const double *load)
{
	double most = 0, sum = 0, at;
	uint32_t h = 0;

	for (uint64_t hosts = senders; hosts;) {
		h = turns_take_host(&hosts);
		most = load[h] > most ? load[h] : most;
	}
	for (uint64_t hosts = senders; hosts;)
		sum += (most - load[turns_take_host(&hosts)]) / g->mean_ns + 1;
	at = (double)(rng_hash(g->seed, g->draws++) >> 11) * 0x1p-53 * sum;
	while (senders && at >= 0) {
		h = turns_take_host(&senders);
		at -= (most - load[h]) / g->mean_ns + 1;
	}
	return h;
}

/* The sum of squares: the sum of the loads is the same for sets that are equally large and long. */
static double spread(const struct greedy *g, const double *load)
{
	double mean = 0, sum = 0;
	int n = __builtin_popcountll(g->senders);

	for (uint64_t hosts = g->senders; hosts;)
		mean += load[turns_take_host(&hosts)] / n;
	for (uint64_t hosts = g->senders; hosts;) {
		double off = load[turns_take_host(&hosts)] - mean;

		sum += off * off;
	}
	return sum;
}

static void put(struct greedy *g, uint32_t place, uint32_t task)
{
	g->left[place] = task;
	g->place[task] = place;
}

static void try_round(struct greedy *g, struct round *r)
{
	uint64_t senders = g->senders, receivers = g->receivers;

	r->n = 0;
	memcpy(r->load, g->load, sizeof(r->load));
	for (uint32_t i = 0; i < g->n_left && senders && receivers; i++) {
		uint32_t other = i + draw(g, g->n_left - i), task = g->left[other], sender;

		put(g, other, g->left[i]);
		put(g, i, task);
		if ((g->tasks[task].receivers & ~receivers) || !(g->tasks[task].senders & senders))
			continue;
		sender = draw_sender(g, g->tasks[task].senders & senders, r->load);
		senders &= ~(UINT64_C(1) << sender);
		receivers &= ~g->tasks[task].receivers;
		r->load[sender] += g->tasks[task].ns;
		r->turns[r->n++] = (struct turn){.task = task, .sender = sender};
	}
	r->spread = spread(g, r->load);
}

static void take_round(struct greedy *g, const struct round *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		put(g, g->place[r->turns[i].task], g->left[--g->n_left]);
	memcpy(g->load, r->load, sizeof(g->load));
}

static int greedy_init(struct greedy *g, const struct turns_task *tasks, uint32_t n, uint64_t seed)
{
	*g = (struct greedy){.tasks = tasks, .seed = seed, .n_left = n};
	g->left = malloc((n ? n : 1) * sizeof(*g->left));
	g->place = malloc((n ? n : 1) * sizeof(*g->place));
	if (!g->left || !g->place)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		put(g, i, i);
		g->senders |= tasks[i].senders;
		g->receivers |= tasks[i].receivers;
		g->mean_ns += tasks[i].ns / n;
	}
	return 0;
}

int turns_greedy(const struct turns_task *tasks, const struct turns_effort *effort, struct turns *t)
{
	CLEANUP(greedy_deinit) struct greedy g;
	struct round best, other;
	uint32_t n = 0;

	if (greedy_init(&g, tasks, t->n, effort->seed))
		return -ENOMEM;
	while (g.n_left) {
		try_round(&g, &best);
		for (int i = 1; i < TRIES && !(effort->is_over && effort->is_over(effort->who));
		     i++) {
			try_round(&g, &other);
			if (other.n > best.n || (other.n == best.n && other.spread < best.spread))
				best = other;
		}
		memcpy(&t->turns[n], best.turns, best.n * sizeof(best.turns[0]));
		n += best.n;
		take_round(&g, &best);
	}
	turns_play(tasks, t);
	t->by = TURNS_GREEDY;
	return 0;
}
