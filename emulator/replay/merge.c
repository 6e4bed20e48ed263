/* See merge.h. */
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

static bool have_same_members(const struct record_comm *a, const struct record_comm *b)
{
	if (a->n_ranks != b->n_ranks || a->n_members != b->n_members)
		return false;
	return a->n_members
		       ? memcmp(a->members, b->members, a->n_members * sizeof(*a->members)) == 0
		       : a->base == b->base && a->stride == b->stride;
}

/* How many of @rec's communicators before @c have its members. */
static uint64_t turn_of(const struct record *rec, const struct record_comm *c)
{
	uint64_t turn = 0;

	for (const struct record_comm *other = rec->comms; other < c; other++)
		turn += have_same_members(other, c);
	return turn;
}

/* The communicator of @ret that is @c of @rec, made if there is none. NULL: no memory. */
static struct record_comm *find_comm(struct record *ret, uint64_t *size, const struct record *rec,
				     const struct record_comm *c)
{
	uint64_t turn = turn_of(rec, c);
	struct record_comm *grown;

	for (uint64_t i = 0; i < ret->n_comms; i++)
		if (have_same_members(&ret->comms[i], c) && turn-- == 0)
			return &ret->comms[i];
	if (ret->n_comms == *size) {
		grown = reallocarray(ret->comms, 2 * *size + 16, sizeof(*grown));
		if (!grown)
			return NULL;
		ret->comms = grown;
		*size = 2 * *size + 16;
	}
	ret->comms[ret->n_comms] = *c;
	ret->comms[ret->n_comms].number = (uint32_t)ret->n_comms + 1;
	ret->comms[ret->n_comms].n_real = 0;
	return &ret->comms[ret->n_comms++];
}

static int by_rank(const void *a, const void *b)
{
	uint32_t x = ((const struct record_member *)a)->rank,
		 y = ((const struct record_member *)b)->rank;

	return (x > y) - (x < y);
}

static int add_real(struct record *ret, struct record_comm *to, const struct record_comm *from)
{
	uint32_t n = to->n_real + from->n_real;
	struct record_member *real = record_keep(ret, n * sizeof(*real));

	if (!real)
		return -ENOMEM;
	if (to->n_real)
		memcpy(real, to->real, to->n_real * sizeof(*real));
	if (from->n_real)
		memcpy(real + to->n_real, from->real, from->n_real * sizeof(*real));
	qsort(real, n, sizeof(*real), by_rank);
	to->real = real;
	to->n_real = n;
	return 0;
}

/* What is added to the numbers and times of a record. */
struct shift {
	uint64_t number, order, ns;
	uint32_t *comms; /* owned; by communicator of the record: index in the merged one */
};

static void shift_deinit(struct shift *s)
{
	free(s->comms);
}

static uint64_t first_ns(const struct record *rec)
{
	uint64_t first = UINT64_MAX;

	for (uint64_t i = 0; i < rec->n_ops; i++)
		first = rec->ops[i].arrive_ns < first ? rec->ops[i].arrive_ns : first;
	for (uint64_t i = 0; i < rec->n_points; i++)
		first = rec->points[i].time_ns < first ? rec->points[i].time_ns : first;
	return first;
}

static uint64_t later(uint64_t at, uint64_t ns)
{
	return at ? at + ns : 0; /* not known */
}

static void add_rows(struct record *ret, const struct record *rec, const struct shift *s)
{
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		struct record_op *op = &ret->ops[ret->n_ops++];

		*op = rec->ops[i];
		op->number += s->number;
		op->order += s->order;
		op->done_order += s->order;
		op->call_ns = later(op->call_ns, s->ns);
		op->work_ns = later(op->work_ns, s->ns);
		op->arrive_ns += s->ns;
		op->start_ns += s->ns;
		op->due_ns += s->ns;
		op->release_ns += s->ns;
		op->local_done_ns = later(op->local_done_ns, s->ns);
		op->of = &ret->comms[s->comms[rec->ops[i].of - rec->comms]];
		op->comm = op->of->number;
	}
	for (uint64_t i = 0; i < rec->n_points; i++) {
		struct record_point *p = &ret->points[ret->n_points++];

		*p = rec->points[i];
		p->order += s->order;
		p->call_ns = later(p->call_ns, s->ns);
		p->work_ns = later(p->work_ns, s->ns);
		p->time_ns += s->ns;
	}
}

/* The real ranks of @rec are nobody's in @is_real yet. */
static int take_real(const struct record *rec, struct bitmap *is_real, struct err *err)
{
	CLEANUP(bitmap_deinit) struct bitmap own = {0};

	if (bitmap_init(&own, rec->header.world_size) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < rec->n_comms; i++)
		for (uint32_t k = 0; k < rec->comms[i].n_real; k++) {
			uint32_t rank = rec->comms[i].real[k].world_rank;

			if (bitmap_test_and_set(&own, rank) && !bitmap_test_and_set(is_real, rank))
				return err_set(
					err, EINVAL,
					"rank %u is real in two of the runs: whose computation "
					"counts?",
					rank);
		}
	return 0;
}

static int check_world(const struct record *a, const struct record *b, struct err *err)
{
	const struct record_header *x = &a->header, *y = &b->header;

	if (x->n_nodes == y->n_nodes && x->gpus_per_node == y->gpus_per_node &&
	    strcmp(x->layout, y->layout) == 0)
		return 0;
	return err_set(err, EINVAL,
		       "the runs are of other worlds: %u nodes of %u GPUs (%s), and %u of %u (%s)",
		       x->n_nodes, x->gpus_per_node, x->layout[0] ? x->layout : "no layout",
		       y->n_nodes, y->gpus_per_node, y->layout[0] ? y->layout : "no layout");
}

static int find_comms(struct record *ret, uint64_t *size, const struct record *rec, struct shift *s,
		      struct err *err)
{
	int r = 0;

	s->comms = calloc(rec->n_comms + 1, sizeof(*s->comms));
	if (!s->comms)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < rec->n_comms && r == 0; i++) {
		struct record_comm *to = find_comm(ret, size, rec, &rec->comms[i]);

		r = to ? add_real(ret, to, &rec->comms[i]) : -ENOMEM;
		s->comms[i] = to ? (uint32_t)(to - ret->comms) : 0;
	}
	return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

static int make_room(const struct record *const *recs, size_t n, struct record *ret)
{
	uint64_t n_ops = 0, n_points = 0;

	for (size_t i = 0; i < n; i++) {
		n_ops += recs[i]->n_ops;
		n_points += recs[i]->n_points;
	}
	ret->ops = calloc(n_ops + 1, sizeof(*ret->ops));
	ret->points = calloc(n_points + 1, sizeof(*ret->points));
	return ret->ops && ret->points ? 0 : -ENOMEM;
}

static void shifts_deinit(struct shift **s)
{
	for (struct shift *at = *s; at && at->comms; at++)
		shift_deinit(at);
	free(*s);
}

int merge_records(const struct record *const *recs, size_t n, struct record *ret, struct err *err)
{
	CLEANUP(record_deinit) struct record all = {.header = recs[0]->header};
	CLEANUP(bitmap_deinit) struct bitmap is_real = {0};
	CLEANUP(shifts_deinit) struct shift *s = calloc(n + 1, sizeof(*s));
	uint64_t size = 0, number = 0, order = 0;
	int r = 0;

	if (!s || bitmap_init(&is_real, all.header.world_size) < 0 || make_room(recs, n, &all) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n && r == 0; i++) {
		r = check_world(recs[0], recs[i], err);
		if (r == 0)
			r = take_real(recs[i], &is_real, err);
		if (r == 0) /* communicators do not move any more once all are there */
			r = find_comms(&all, &size, recs[i], &s[i], err);
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		s[i].number = number;
		s[i].order = order;
		s[i].ns = first_ns(recs[0]) - first_ns(recs[i]);
		add_rows(&all, recs[i], &s[i]);
		for (uint64_t k = 0; k < recs[i]->n_ops; k++)
			number = all.ops[all.n_ops - 1 - k].number >= number
					 ? all.ops[all.n_ops - 1 - k].number + 1
					 : number;
		order += recs[i]->n_ops + recs[i]->n_points;
		all.is_truncated |= recs[i]->is_truncated;
	}
	if (r < 0)
		return r;
	all.header.n_real = (uint32_t)bitmap_count(&is_real);
	all.job = recs[0]->job;
	all.job_bytes = recs[0]->job_bytes;
	*ret = all;
	all = (struct record){0};
	return 0;
}
