/* See sizes.h. */
#include "replay/sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

/* An op of a real rank, which is counted by its rank in the first record's world. */
struct entry {
	uint32_t rank, comm;
	bool is_p2p;
	uint64_t seq, index;
};

/* Ops that stand one behind the other: of a rank in a communicator, collectives or not. */
struct queue {
	const struct entry *ops;
	uint64_t n;
};

struct list {
	const struct record *rec;
	struct entry *entries; /* owned, sorted */
	struct queue *queues;  /* owned; by rank, then communicator */
	uint64_t n, n_queues;
};

static void list_deinit(struct list *l)
{
	free(l->entries);
	free(l->queues);
}

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static bool are_together(const struct entry *a, const struct entry *b)
{
	return a->rank == b->rank && a->comm == b->comm && a->is_p2p == b->is_p2p;
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->rank != y->rank)
		return order(x->rank, y->rank);
	if (x->comm != y->comm)
		return order(x->comm, y->comm);
	if (x->is_p2p != y->is_p2p)
		return x->is_p2p ? 1 : -1;
	return order(x->seq, y->seq);
}

/* @own: the world of @rec; @first: of the record whose ranks count. */
static int list_make(const struct record *rec, const struct world *own, const struct world *first,
		     struct list *ret, struct err *err)
{
	*ret = (struct list){.rec = rec,
			     .entries = calloc(rec->n_ops + 1, sizeof(struct entry)),
			     .queues = calloc(rec->n_ops + 1, sizeof(struct queue))};
	if (!ret->entries || !ret->queues)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *op = &rec->ops[i];
		int64_t rank = world_rank(own, first, op->world_rank);

		if (rank < 0)
			return err_set(err, EINVAL,
				       "rank %u is real in the run of %u ranks, and nobody does "
				       "what it does in that of %u",
				       op->world_rank, own->size, first->size);
		ret->entries[ret->n++] = (struct entry){(uint32_t)rank, op->comm,
							op->kind == COLL_SENDRECV, op->seq, i};
	}
	qsort(ret->entries, ret->n, sizeof(*ret->entries), compare);
	for (uint64_t i = 0; i < ret->n; i++) {
		if (i == 0 || !are_together(&ret->entries[i - 1], &ret->entries[i]))
			ret->queues[ret->n_queues++].ops = &ret->entries[i];
		ret->queues[ret->n_queues - 1].n++;
	}
	return 0;
}

static const struct record_op *op_at(const struct list *l, const struct queue *q, uint64_t i)
{
	return &l->rec->ops[q->ops[i].index];
}

/* The first op by which they differ; UINT64_MAX: none. */
static uint64_t first_other(const struct list *la, const struct queue *a, const struct list *lb,
			    const struct queue *b)
{
	uint64_t i = 0;

	while (i < a->n && i < b->n && op_at(la, a, i)->kind == op_at(lb, b, i)->kind &&
	       op_at(la, a, i)->dtype == op_at(lb, b, i)->dtype)
		i++;
	return i < a->n || i < b->n ? i : UINT64_MAX;
}

/* The queues from @from on, of the same rank, that may be the same as @q: both of collectives, or
 * both not. UINT64_MAX: there is none. */
static uint64_t next_of_rank(const struct list *l, uint64_t from, const struct queue *q)
{
	for (uint64_t i = from; i < l->n_queues; i++)
		if (l->queues[i].ops->rank == q->ops->rank &&
		    l->queues[i].ops->is_p2p == q->ops->is_p2p)
			return i;
	return UINT64_MAX;
}

/* How many queues of @l are as @q of @of; *ret is the one of number @turn. */
static uint64_t count_alike(const struct list *l, const struct list *of, const struct queue *q,
			    uint64_t turn, uint64_t *ret)
{
	uint64_t n = 0;

	for (uint64_t i = next_of_rank(l, 0, q); i != UINT64_MAX; i = next_of_rank(l, i + 1, q)) {
		if (first_other(of, q, l, &l->queues[i]) != UINT64_MAX)
			continue;
		if (n++ == turn)
			*ret = i;
	}
	return n;
}

static int refuse_op(const struct list *a, const struct queue *x, const struct list *b,
		     const struct queue *y, struct err *err)
{
	uint64_t i = first_other(a, x, b, y);
	const char *in_a = i < x->n ? coll_kind_name(op_at(a, x, i)->kind) : "missing",
		   *in_b = i < y->n ? coll_kind_name(op_at(b, y, i)->kind) : "missing";

	return err_set(
		err, EINVAL,
		"the runs of %u and %u ranks are not of one job: of rank %u, op %llu in communicator %u is %s "
		"in the one, and in communicator %u %s in the other (%llu ops there, and %llu)",
		a->rec->header.world_size, b->rec->header.world_size, op_at(a, x, 0)->world_rank,
		(unsigned long long)i + 1, x->ops->comm, in_a, y->ops->comm, in_b,
		(unsigned long long)x->n, (unsigned long long)y->n);
}

static bool has_rank(const struct list *l, uint32_t rank)
{
	for (uint64_t i = 0; i < l->n_queues; i++)
		if (l->queues[i].ops->rank == rank)
			return true;
	return false;
}

static int check_ranks(const struct list *a, const struct list *b, struct err *err)
{
	for (uint64_t i = 0; i < a->n_queues; i++)
		if (!has_rank(b, a->queues[i].ops->rank))
			return err_set(
				err, EINVAL,
				"rank %u is real in the run of %u ranks, but what it computes no rank does that is "
				"real in that of %u: record that with the same ranks (--real)",
				op_at(a, &a->queues[i], 0)->world_rank, a->rec->header.world_size,
				b->rec->header.world_size);
	return 0;
}

/* A queue of @b that is none of @a's. @is_met: of both lists. */
static int check_rest(const struct list *a, const bool *a_is_met, const struct list *b,
		      const bool *b_is_met, struct err *err)
{
	for (uint64_t i = 0; i < b->n_queues; i++) {
		const struct queue *q = &b->queues[i];
		uint64_t k = next_of_rank(a, 0, q);

		if (b_is_met[i] || !has_rank(a, q->ops->rank))
			continue;
		while (k != UINT64_MAX && a_is_met[k])
			k = next_of_rank(a, k + 1, q);
		if (k != UINT64_MAX)
			return refuse_op(a, &a->queues[k], b, q, err);
		return err_set(
			err, EINVAL,
			"rank %u has %llu ops (%s ...) in communicator %u of the run of %u ranks, and no such "
			"communicator in that of %u: re-time the former, --with the latter",
			op_at(b, q, 0)->world_rank, (unsigned long long)q->n,
			coll_kind_name(op_at(b, q, 0)->kind), q->ops->comm,
			b->rec->header.world_size, a->rec->header.world_size);
	}
	return 0;
}

static int match_queues(const struct list *a, bool *a_is_met, const struct list *b, bool *b_is_met,
			uint64_t *same, struct err *err)
{
	for (uint64_t i = 0; i < a->n_queues; i++) {
		const struct queue *q = &a->queues[i];
		uint64_t turn = 0, to = 0, in_a, in_b;

		for (uint64_t k = next_of_rank(a, 0, q); k < i; k = next_of_rank(a, k + 1, q))
			turn += first_other(a, q, a, &a->queues[k]) == UINT64_MAX;
		in_a = count_alike(a, a, q, UINT64_MAX, &to);
		in_b = count_alike(b, a, q, turn, &to);
		if (in_b && in_a != in_b)
			return err_set(
				err, EINVAL,
				"rank %u has %llu communicators with the same ops as communicator %u in the run "
				"of %u ranks, and %llu in that of %u: which is which nobody knows",
				op_at(a, q, 0)->world_rank, (unsigned long long)in_a, q->ops->comm,
				a->rec->header.world_size, (unsigned long long)in_b,
				b->rec->header.world_size);
		if (!in_b)
			continue;
		a_is_met[i] = b_is_met[to] = true;
		for (uint64_t k = 0; k < q->n; k++)
			same[q->ops[k].index] = b->queues[to].ops[k].index;
	}
	return check_rest(a, a_is_met, b, b_is_met, err);
}

static int match(const struct list *a, const struct world *world, struct sizes_other *o,
		 struct err *err)
{
	CLEANUP(list_deinit) struct list b = {.n = 0};
	CLEANUP(freep) bool *a_is_met = calloc(a->n_queues + 1, sizeof(bool)), *b_is_met = NULL;
	int r = list_make(o->rec, &o->world, world, &b, err);

	if (r < 0)
		return r;
	b_is_met = calloc(b.n_queues + 1, sizeof(*b_is_met));
	o->same = malloc((a->n + 1) * sizeof(*o->same));
	if (!a_is_met || !b_is_met || !o->same)
		return err_set(err, ENOMEM, "out of memory");
	memset(o->same, 0xff, (a->n + 1) * sizeof(*o->same)); /* SIZES_NONE */
	r = check_ranks(a, &b, err);
	return r == 0 ? match_queues(a, a_is_met, &b, b_is_met, o->same, err) : r;
}

int sizes_match(const struct record *rec, const struct record *const *others, size_t n,
		struct sizes *ret, struct err *err)
{
	CLEANUP(sizes_deinit)
	struct sizes s = {.rec = rec, .others = calloc(n + 1, sizeof(*s.others))};
	CLEANUP(list_deinit) struct list list = {.n = 0};
	struct world world;
	int r = s.others ? world_of_record(&rec->header, &world, err)
			 : err_set(err, ENOMEM, "out of memory");

	if (r == 0)
		r = list_make(rec, &world, &world, &list, err);
	for (; s.n < n && r == 0; s.n++) {
		struct sizes_other *o = &s.others[s.n];

		o->rec = others[s.n];
		r = world_of_record(&o->rec->header, &o->world, err);
		r = r == 0 ? world_check(&world, &o->world, err) : r;
		if (r < 0)
			err_prefix(err, r, "the run of %u ranks beside that of %u",
				   o->rec->header.world_size, world.size);
		r = r == 0 ? match(&list, &world, o, err) : r;
	}
	if (r < 0)
		return r;
	*ret = s;
	s = (struct sizes){.n = 0};
	return 0;
}

void sizes_deinit(struct sizes *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->others[i].same);
	free(s->others);
}
