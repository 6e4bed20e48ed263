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

	for (uint32_t i = r->first + r->n_lead; i < r->first + r->n; i++) {
		uint32_t join = t->ops[i].join;
		const struct predict_time *mine;
		struct blame *b;

		add_op(t, i, &s);
		if (!predict_is_exchange(&t->ops[i]))
			continue;
		if (join == PREDICT_NONE) {
			s = (struct blame_stretch){.host = 0};
			continue;
		}
		b = &blames[join];
		mine = &p->kernels[predict_kernel_of(&t->ops[i])];
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
	if (x->join != y->join)
		return x->join < y->join ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
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

		if (op->join == PREDICT_NONE || !blames[op->join].n_ranks) /* of a lead */
			continue;
		b = &blames[op->join];
		wait = p->kernels[predict_kernel_of(&t->ops[b->op])].ready -
		       p->kernels[predict_kernel_of(op)].ready;
		b->wait_sum += wait;
		b->wait_max = fmax(b->wait_max, wait);
	}
}

/* --- messages ------------------------------------------------------------------------ */

/* Who comes later than the other end, and needs not have. @ops: by message, of the receiver and the
 * sender. */
static void add_message_waits(const struct predict_task *t, const struct predict *p,
			      const uint32_t *ops, struct blame *by_rank)
{
	for (uint32_t m = 0; m < t->n_messages; m++) {
		const uint32_t *of = &ops[2 * (size_t)m];
		const struct predict_time *late;
		struct blame *b;
		double wait;

		if (of[0] == PREDICT_NONE || of[1] == PREDICT_NONE) /* of a lead */
			continue;
		wait = p->kernels[predict_kernel_of(&t->ops[of[1]])].ready -
		       p->kernels[predict_kernel_of(&t->ops[of[0]])].ready;
		late = &p->kernels[predict_kernel_of(&t->ops[of[wait > 0]])];
		b = &by_rank[late->rank];
		if (wait < 0 && t->messages[m].taken >= 1) /* the sender is over */
			continue;
		b->wait_sum += fabs(wait);
		if (fabs(wait) > b->wait_max) {
			b->wait_max = fabs(wait);
			b->op = late->op;
		}
	}
}

static void find_senders(const struct predict_task *t, const struct predict *p, uint32_t *ops,
			 double *sorted, struct blame *by_rank)
{
	memset(ops, 0xff, 2 * (size_t)t->n_messages * sizeof(*ops));
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		const struct predict_rank *rank = &t->ranks[r];

		by_rank[r] =
			(struct blame){.join = PREDICT_NONE, .rank = r, .n_ranks = 2, .won = NAN};
		for (uint32_t i = rank->first + rank->n_lead; i < rank->first + rank->n; i++) {
			const struct predict_op *op = &t->ops[i];

			add_op(t, i, &by_rank[r].stretch);
			for (uint32_t e = op->first_end; e < op->first_end + op->n_ends; e++)
				ops[2 * (size_t)t->ends[e].message + t->ends[e].is_send] = i;
		}
		sorted[r] = kernels_ns(&by_rank[r].stretch);
	}
	qsort(sorted, t->n_ranks, sizeof(*sorted), by_ns);
	for (uint32_t r = 0; r < t->n_ranks; r++)
		by_rank[r].median = sorted[(t->n_ranks - 1) / 2];
	add_message_waits(t, p, ops, by_rank);
}

/* --- what would be won --------------------------------------------------------------- */

/* Kernels of the rank's ops @first to @last take @ratio as long. */
static void scale(const struct predict_task *t, uint32_t first, uint32_t last, double ratio,
		  struct predict_kernel *kernels)
{
	for (uint32_t k = t->ops[first].first; k < t->ops[last].first + t->ops[last].n; k++)
		if (kernels[k].class != PREDICT_COLLECTIVE)
			kernels[k].ns *= ratio;
}

static void scale_stretch(const struct predict_task *t, const struct blame *b,
			  struct predict_kernel *kernels)
{
	uint32_t from = b->op, first = t->ranks[b->rank].first + t->ranks[b->rank].n_lead;

	while (from > first && !predict_is_exchange(&t->ops[from - 1]))
		from--;
	scale(t, from, b->op, b->median / kernels_ns(&b->stretch), kernels);
}

/* All that are about as slow. @by_rank: of all ranks. */
static void scale_ranks(const struct predict_task *t, const struct blame *b,
			const struct blame *by_rank, struct predict_kernel *kernels)
{
	double slow = kernels_ns(&b->stretch), near = (slow - b->median) / 2;

	for (uint32_t r = 0; r < t->n_ranks; r++) {
		const struct predict_rank *rank = &t->ranks[r];
		double own = kernels_ns(&by_rank[r].stretch);

		if (fabs(own - slow) < near)
			scale(t, rank->first, rank->first + rank->n - 1, b->median / own, kernels);
	}
}

/* The iteration as it would be if the culprit's kernels took the median. @kernels: a copy of @t's.
 */
static int ask(const struct predict_task *t, enum predict_sync sync, const struct predict *p,
	       const struct blame *by_rank, struct predict_kernel *kernels, struct blame *b)
{
	struct predict_task other = *t;
	struct predict played;
	uint32_t none;
	int r;

	b->won = 0;
	if (!(kernels_ns(&b->stretch) > b->median))
		return 0;
	if (b->join == PREDICT_NONE)
		scale_ranks(t, b, by_rank, kernels);
	else
		scale_stretch(t, b, kernels);
	other.kernels = kernels;
	r = predict_play(&other, sync, &played, &none);
	memcpy(kernels, t->kernels, t->n_kernels * sizeof(*kernels));
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
	size_t n_all = (size_t)t->n_joins + t->n_ranks;
	CLEANUP(freep) struct blame *blames = malloc((n_all + 1) * sizeof(*blames));
	CLEANUP(freep) struct blame *by_rank = malloc((t->n_ranks + 1) * sizeof(*by_rank));
	CLEANUP(freep) double *sorted = malloc((t->n_ranks + 1) * sizeof(*sorted));
	CLEANUP(freep) uint32_t *ops = malloc((2 * (size_t)t->n_messages + 1) * sizeof(*ops));
	CLEANUP(freep) uint32_t *first = calloc(t->n_joins + 2, sizeof(*first));
	CLEANUP(freep) uint32_t *n_seen = calloc(t->n_joins + 1, sizeof(*n_seen));
	CLEANUP(freep)
	struct predict_kernel *kernels = malloc((t->n_kernels + 1) * sizeof(*kernels));
	struct sums sums = {NULL, first};
	uint32_t n = 0;
	int r = -ENOMEM;

	if (blames && by_rank && sorted && ops && first && n_seen && kernels)
		r = find(t, p, blames, &sums, n_seen);
	free(sums.of);
	if (r < 0)
		return r;
	find_senders(t, p, ops, sorted, by_rank);
	for (uint32_t j = 0; j < t->n_joins; j++)
		if (blames[j].n_ranks > 1)
			blames[n++] = blames[j];
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (by_rank[i].wait_sum > 0)
			blames[n++] = by_rank[i];
	if (t->n_kernels)
		memcpy(kernels, t->kernels, t->n_kernels * sizeof(*kernels));
	qsort(blames, n, sizeof(*blames), by_wait);
	for (uint32_t i = 0; i < n && i < n_asked && r == 0; i++)
		r = ask(t, sync, p, by_rank, kernels, &blames[i]);
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
