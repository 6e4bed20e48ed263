/* See turns-bound.h. */
#include "mesh/turns-bound.h"

#include <math.h>

#include "mesh/turns-play.h"

#define SUBSETS_OF 12 /* senders; and not more work than ... */
#define WORK (UINT64_C(1) << 24)

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* What only hosts of @set can send, shared evenly among them; and one of them sends no fewer tasks
 * than the mean. */
static double set_bound(const struct turns_task *tasks, uint32_t n, uint64_t set)
{
	uint32_t hosts = (uint32_t)__builtin_popcountll(set), count = 0;
	double sum = 0, least = INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		if (tasks[i].senders & ~set)
			continue;
		sum += tasks[i].ns;
		least = fmin(least, tasks[i].ns);
		count++;
	}
	return count ? most(sum / hosts, (count + hosts - 1) / hosts * least) : 0;
}

static double all_subsets_bound(const struct turns_task *tasks, uint32_t n, uint64_t senders)
{
	double bound = 0;

	for (uint64_t set = senders; set; set = (set - 1) & senders)
		bound = most(bound, set_bound(tasks, n, set));
	return bound;
}

static double some_subsets_bound(const struct turns_task *tasks, uint32_t n, uint64_t senders)
{
	double bound = set_bound(tasks, n, senders);

	for (uint64_t hosts = senders; hosts;)
		bound = most(bound, set_bound(tasks, n, UINT64_C(1) << turns_take_host(&hosts)));
	for (uint32_t i = 0; i < n && i < 64; i++)
		bound = most(bound, set_bound(tasks, n, tasks[i].senders));
	return bound;
}

double turns_bound(const struct turns_task *tasks, uint32_t n)
{
	double receives[64] = {0}, bound = 0;
	uint64_t senders = 0;

	for (uint32_t i = 0; i < n; i++) {
		senders |= tasks[i].senders;
		for (uint64_t hosts = tasks[i].receivers; hosts;)
			receives[turns_take_host(&hosts)] += tasks[i].ns;
	}
	for (int h = 0; h < 64; h++)
		bound = most(bound, receives[h]);
	if (n == 0)
		return 0;
	return most(bound, __builtin_popcountll(senders) <= SUBSETS_OF &&
					   (uint64_t)n << __builtin_popcountll(senders) <= WORK
				   ? all_subsets_bound(tasks, n, senders)
				   : some_subsets_bound(tasks, n, senders));
}
