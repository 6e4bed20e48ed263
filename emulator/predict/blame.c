#include "predict/blame.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* By collective: what its ranks' kernels took in their stretches. */
struct sums {
	double *of;      /* owned; those of a collective stand together */
	uint32_t *first; /* owned; n_joins + 1 */
};

static double kernels_ns(const struct blame_stretch *s)
{
	double ns = 0;

	for (int c = 0; c < PREDICT_COLLECTIVE; c++)
		ns += s->sum[c];
	return ns;
}

/* What op @i adds to its rank's stretch. */
static void add_op(const struct predict_task *t, uint32_t i, struct blame_stretch *s)
{
	const struct predict_op *op = &t->ops[i];
	const struct predict_host *h = op->host;

	s->host += h->before + (op->n ? h->first + h->last : h->next);
	for (uint32_t k = op->first; k < op->first + op->n; k++) {
		s->host += h->launch + (k > op->first ? h->next : 0);
		if (t->kernels[k].class != PREDICT_COLLECTIVE)
			s->sum[t->kernels[k].class] += t->kernels[k].ns;
	}
}

static void take_rank(const struct predict_task *t, const struct predict *p, uint32_t rank,
		      struct blame *blames, struct sums *sums, uint32_t *n_seen)
{
	const struct predict_rank *r = &t->ranks[rank];
	struct blame_stretch s = {.host = 0};

	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		uint32_t join = t->ops[i].join;
		const struct predict_time *mine;
		struct blame *b;

		add_op(t, i, &s);
		if (join == PREDICT_NONE)
			continue;
		b = &blames[join];
		mine = &p->kernels[t->ops[i].first + t->ops[i].n - 1];
		sums->of[sums->first[join] + n_seen[join]++] = kernels_ns(&s);
		if (!b->n_ranks++ || mine->ready > b->wait_max) { /* for now: the last arrival */
			b->wait_max = mine->ready;
			b->rank = rank;
			b->op = i;
			b->stretch = s;
		}
		s = (struct blame_stretch){.host = 0};
	}
}

static int by_ns(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int by_wait(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;

	if (x->wait_sum != y->wait_sum)
		return x->wait_sum > y->wait_sum ? -1 : 1;
	return x->join < y->join ? -1 : 1;
}

static int by_won(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	double won_x = isnan(x->won) ? -INFINITY : x->won,
	       won_y = isnan(y->won) ? -INFINITY : y->won;

	return won_x != won_y ? (won_x > won_y ? -1 : 1) : by_wait(a, b);
}

/* Every member's wait, once it is known who came last. */
static void add_waits(const struct predict_task *t, const struct predict *p, struct blame *blames)
{
	for (uint32_t i = 0; i < t->n_ops; i++) {
		const struct predict_op *op = &t->ops[i];
		struct blame *b;
		double wait;

		if (op->join == PREDICT_NONE)
			continue;
		b = &blames[op->join];
		wait = p->kernels[t->ops[b->op].first + t->ops[b->op].n - 1].ready -
		       p->kernels[op->first + op->n - 1].ready;
		b->wait_sum += wait;
		b->wait_max = fmax(b->wait_max, wait);
	}
}

/* The iteration as it would be if the culprit's kernels took the median. @kernels: a copy of @t's.
 */
static int ask(const struct predict_task *t, enum predict_sync sync, const struct predict *p,
	       struct predict_kernel *kernels, struct blame *b)
{
	struct predict_task other = *t;
	uint32_t first = t->ranks[b->rank].first, from = b->op, none;
	double own = kernels_ns(&b->stretch);
	struct predict played;
	int r;

	b->won = 0;
	if (!(own > b->median))
		return 0;
	while (from > first && t->ops[from - 1].join == PREDICT_NONE)
		from--;
	for (uint32_t k = t->ops[from].first; k < t->ops[b->op].first + t->ops[b->op].n; k++)
		if (kernels[k].class != PREDICT_COLLECTIVE)
			kernels[k].ns *= b->median / own;
	other.kernels = kernels;
	r = predict_play(&other, sync, &played, &none);
	for (uint32_t k = t->ops[from].first; k < t->ops[b->op].first + t->ops[b->op].n; k++)
		kernels[k] = t->kernels[k];
	if (r < 0)
		return r;
	b->won = p->ns - played.ns;
	predict_deinit(&played);
	return 0;
}

static int find(const struct predict_task *t, const struct predict *p, struct blame *blames,
		struct sums *sums, uint32_t *n_seen)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].join != PREDICT_NONE)
			sums->first[t->ops[i].join + 1]++;
	for (uint32_t j = 0; j < t->n_joins; j++) {
		sums->first[j + 1] += sums->first[j];
		blames[j] = (struct blame){.join = j, .won = NAN};
	}
	sums->of = malloc((sums->first[t->n_joins] + 1) * sizeof(*sums->of));
	if (!sums->of)
		return -ENOMEM;
	for (uint32_t r = 0; r < t->n_ranks; r++)
		take_rank(t, p, r, blames, sums, n_seen);
	for (uint32_t j = 0; j < t->n_joins; j++) {
		double *of = &sums->of[sums->first[j]];

		blames[j].wait_max = 0;
		qsort(of, blames[j].n_ranks, sizeof(*of), by_ns);
		blames[j].median = blames[j].n_ranks ? of[(blames[j].n_ranks - 1) / 2] : 0;
	}
	add_waits(t, p, blames);
	return 0;
}

int blame_find(const struct predict_task *t, enum predict_sync sync, const struct predict *p,
	       uint32_t n_asked, struct blame **ret, uint32_t *ret_n)
{
	CLEANUP(freep) struct blame *blames = malloc((t->n_joins + 1) * sizeof(*blames));
	CLEANUP(freep) uint32_t *first = calloc(t->n_joins + 2, sizeof(*first));
	CLEANUP(freep) uint32_t *n_seen = calloc(t->n_joins + 1, sizeof(*n_seen));
	CLEANUP(freep)
	struct predict_kernel *kernels = malloc((t->n_kernels + 1) * sizeof(*kernels));
	struct sums sums = {NULL, first};
	uint32_t n = 0;
	int r = -ENOMEM;

	if (blames && first && n_seen && kernels)
		r = find(t, p, blames, &sums, n_seen);
	free(sums.of);
	if (r < 0)
		return r;
	for (uint32_t j = 0; j < t->n_joins; j++)
		if (blames[j].n_ranks > 1)
			blames[n++] = blames[j];
	if (t->n_kernels)
		memcpy(kernels, t->kernels, t->n_kernels * sizeof(*kernels));
	qsort(blames, n, sizeof(*blames), by_wait);
	for (uint32_t i = 0; i < n && i < n_asked && r == 0; i++)
		r = ask(t, sync, p, kernels, &blames[i]);
	if (r < 0)
		return r;
	qsort(blames, n, sizeof(*blames), by_won);
	*ret = steal_ptr(blames);
	*ret_n = n;
	return 0;
}

double blame_comm(const struct predict_task *t, const struct predict *p)
{
	double least = INFINITY;

	for (uint32_t r = 0; r < t->n_ranks; r++)
		least = fmin(least, p->ranks[r].exposed);
	return p->ns > 0 && t->n_ranks ? least / p->ns : 0;
}

double blame_imbalance(const struct predict_task *t, const struct predict *p,
		       enum predict_class class)
{
	double most = 0, sum = 0;

	for (uint32_t r = 0; r < t->n_ranks; r++) {
		most = fmax(most, p->ranks[r].sum[class]);
		sum += p->ranks[r].sum[class];
	}
	return p->ns > 0 && t->n_ranks ? (most - sum / t->n_ranks) / p->ns : 0;
}
