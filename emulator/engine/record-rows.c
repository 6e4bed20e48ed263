/* See record-rows.h. */
#include "engine/record-rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/record.h"
#include "engine/timing.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"

#define BLOCK_BYTES (64 << 10)

/* Entries of lists, in blocks that do not move. */
struct record_lists {
	struct record_lists *next;
	size_t used, size;
	char data[];
};

/* One row, as it lies in a frame. */
struct row {
	struct rows *rows;
	struct record_row head;
	const char *at, *end; /* of what is not taken yet */
	struct err *err;
};

static int refuse(const struct row *row, const char *why)
{
	return err_set(row->err, EINVAL, "row %llu of the record %s",
		       (unsigned long long)row->rows->n, why);
}

/* Room for one more. Return: 0; -ENOMEM with the sentence. */
static int grow(const struct row *row, void *list, uint64_t *size, uint64_t n, size_t entry_bytes)
{
	void *at, *grown;

	if (n < *size)
		return 0;
	memcpy(&at, list, sizeof(at));
	grown = reallocarray(at, 2 * *size + 64, entry_bytes);
	if (!grown)
		return err_set(row->err, ENOMEM, "no memory for more than %llu rows",
			       (unsigned long long)row->rows->n);
	memcpy(list, &grown, sizeof(grown));
	*size = 2 * *size + 64;
	return 0;
}

void *record_keep(struct record *rec, size_t bytes)
{
	struct record_lists *l = rec->lists;

	bytes = record_padded(bytes);
	if (!l || l->size - l->used < bytes) {
		size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;

		l = malloc(sizeof(*l) + size);
		if (!l)
			return NULL;
		*l = (struct record_lists){.next = rec->lists, .size = size};
		rec->lists = l;
	}
	l->used += bytes;
	return l->data + l->used - bytes;
}

/* --- fields and lists -------------------------------------------------------------- */

/* Takes the fields: what the row lacks is zero, what it has beyond is passed over. */
static void take_fields(struct row *row, void *fields, size_t bytes)
{
	memcpy(fields, row->at, bytes < row->head.fields_bytes ? bytes : row->head.fields_bytes);
	row->at += row->head.fields_bytes;
}

/* Takes the next list; one that the row lacks is empty. Return: 0; negative errno with the
 * sentence. */
static int take_list(struct row *row, size_t entry_bytes, void *ret_list, uint32_t *ret_n)
{
	struct record_list l;
	uint64_t bytes;
	char *list;

	*ret_n = 0;
	if (row->head.n_lists == 0)
		return 0;
	row->head.n_lists--;
	if (row->end - row->at < (ptrdiff_t)sizeof(l))
		return refuse(row, "ends before its lists do");
	memcpy(&l, row->at, sizeof(l));
	row->at += sizeof(l);
	bytes = (uint64_t)l.n * l.entry_bytes;
	if (bytes > (uint64_t)(row->end - row->at))
		return refuse(row, "ends before its lists do");
	if (l.n && l.entry_bytes < entry_bytes)
		return refuse(row, "has a list of entries that are too short");
	list = l.n ? record_keep(row->rows->rec, l.n * entry_bytes) : NULL;
	if (l.n && !list)
		return err_set(row->err, ENOMEM, "no memory for the lists of the record");
	for (uint32_t i = 0; i < l.n; i++)
		memcpy(list + i * entry_bytes, row->at + (size_t)i * l.entry_bytes, entry_bytes);
	bytes = record_padded(bytes);
	row->at += bytes < (uint64_t)(row->end - row->at) ? (ptrdiff_t)bytes : row->end - row->at;
	memcpy(ret_list, &list, sizeof(list));
	*ret_n = l.n;
	return 0;
}

/* --- each kind of row -------------------------------------------------------------- */

static int add_header(struct row *row)
{
	struct record_header *h = &row->rows->rec->header;

	take_fields(row, h, sizeof(*h));
	if (!memchr(h->model, '\0', sizeof(h->model)))
		return err_set(row->err, EINVAL, "the record's model name does not end");
	if (!memchr(h->layout, '\0', sizeof(h->layout)))
		return err_set(row->err, EINVAL, "the record's layout does not end");
	if (!memchr(h->data_for, '\0', sizeof(h->data_for)))
		return err_set(row->err, EINVAL, "the record's list of data policies does not end");
	if (!memchr(h->retimed_of, '\0', sizeof(h->retimed_of)))
		return err_set(row->err, EINVAL, "the name of the record's run does not end");
	if (h->world_size > RECORD_WORLD_MAX)
		return err_set(row->err, EINVAL, "the record has a world of %u ranks: at most %u",
			       h->world_size, RECORD_WORLD_MAX);
	if (h->n_real > h->world_size)
		return err_set(row->err, EINVAL, "the record has %u real ranks in a world of %u",
			       h->n_real, h->world_size);
	return 0;
}

static int add_end(struct row *row)
{
	take_fields(row, &row->rows->rec->end, sizeof(row->rows->rec->end));
	row->rows->has_end = true;
	return 0;
}

static int check_comm(const struct row *row, const struct record_comm *c)
{
	const struct record *rec = row->rows->rec;
	uint32_t world = rec->header.world_size;

	if (rec->n_comms && c->number <= rec->comms[rec->n_comms - 1].number)
		return refuse(row, "has a communicator of a number that was there");
	if (c->n_ranks == 0 || c->n_ranks > world || c->n_real > c->n_ranks ||
	    (c->n_members && c->n_members != c->n_ranks) ||
	    (!c->n_members && c->base + (uint64_t)(c->n_ranks - 1) * c->stride >= world))
		return refuse(row, "has a communicator that cannot be in its world");
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i] >= world)
			return refuse(row, "has a member that is not in its world");
	for (uint32_t i = 0; i < c->n_real; i++)
		if (c->real[i].rank >= c->n_ranks || c->real[i].world_rank >= world)
			return refuse(row, "has a real member that is not in its world");
	return 0;
}

static int add_comm(struct row *row)
{
	struct record *rec = row->rows->rec;
	struct record_comm c = {0};
	int r;

	take_fields(row, &c, RECORD_COMM_BYTES);
	if ((r = take_list(row, sizeof(*c.members), &c.members, &c.n_members)) < 0 ||
	    (r = take_list(row, sizeof(*c.real), &c.real, &c.n_real)) < 0 ||
	    (r = check_comm(row, &c)) < 0 ||
	    (r = grow(row, &rec->comms, &row->rows->comms_size, rec->n_comms, sizeof(c))) < 0)
		return r;
	rec->comms[rec->n_comms++] = c;
	return 0;
}

static int check_op(const struct row *row, const struct record_op *op)
{
	const struct record *rec = row->rows->rec;
	const struct record_comm *c = record_find_comm(rec, op->comm);

	if (op->kind >= COLL_KINDS || op->dtype >= COLL_DTYPES || op->algo >= SCHED_ALGOS ||
	    op->how > SOLVE_SIM)
		return err_set(row->err, EINVAL,
			       "row %llu of the record has kind %u, type %u, algorithm %u, "
			       "solution %u: one of them does not exist",
			       (unsigned long long)row->rows->n, op->kind, op->dtype, op->algo,
			       op->how);
	if (!c || op->rank >= c->n_ranks || op->world_rank >= rec->header.world_size)
		return err_set(row->err, EINVAL,
			       "row %llu of the record is of rank %u, world rank %u, of "
			       "communicator %u, which has %u",
			       (unsigned long long)row->rows->n, op->rank, op->world_rank, op->comm,
			       c ? c->n_ranks : 0);
	if (!isfinite(op->model_ns) || !isfinite(op->injected_ns))
		return refuse(row, "has a time that is no number");
	return 0;
}

static int add_op(struct row *row)
{
	struct record *rec = row->rows->rec;
	struct record_op op = {0};
	int r;

	take_fields(row, &op, RECORD_OP_BYTES);
	if ((r = check_op(row, &op)) < 0 ||
	    (r = take_list(row, sizeof(*op.deps), &op.deps, &op.n_deps)) < 0 ||
	    (r = take_list(row, sizeof(*op.calls), &op.calls, &op.n_calls)) < 0 ||
	    (r = grow(row, &rec->ops, &row->rows->ops_size, rec->n_ops, sizeof(op))) < 0)
		return r;
	rec->ops[rec->n_ops++] = op;
	return 0;
}

static int add_point(struct row *row)
{
	struct record *rec = row->rows->rec;
	struct record_point p = {0};
	int r;

	take_fields(row, &p, RECORD_POINT_BYTES);
	if (p.kind >= RECORD_POINT_KINDS || p.world_rank >= rec->header.world_size)
		return refuse(row, "is a point of a kind, or of a rank, that is not there");
	if ((r = take_list(row, sizeof(*p.deps), &p.deps, &p.n_deps)) < 0 ||
	    (r = grow(row, &rec->points, &row->rows->points_size, rec->n_points, sizeof(p))) < 0)
		return r;
	rec->points[rec->n_points++] = p;
	return 0;
}

static int add_job(struct row *row)
{
	struct record *rec = row->rows->rec;
	int r;

	row->at += row->head.fields_bytes;
	r = take_list(row, 1, &rec->job, &rec->job_bytes);
	if (r == 0 && rec->job_bytes && rec->job[rec->job_bytes - 1])
		return refuse(row, "has texts that do not end");
	return r;
}

/* A row of another kind is passed over. */
static int add_row(struct row *row)
{
	if ((row->rows->n == 0) != (row->head.kind == RECORD_HEADER))
		return refuse(row, row->rows->n ? "is a second header" : "is no header");
	switch (row->head.kind) {
	case RECORD_HEADER:
		return add_header(row);
	case RECORD_END:
		return add_end(row);
	case RECORD_COMM:
		return add_comm(row);
	case RECORD_OP:
		return add_op(row);
	case RECORD_POINT:
		return add_point(row);
	case RECORD_JOB:
		return add_job(row);
	default:
		return 0;
	}
}

int rows_add(struct rows *rows, const char *data, size_t n, struct err *err)
{
	struct row row = {.rows = rows, .err = err};
	int r = 0;

	while (r == 0 && n > 0 && !rows->has_end) {
		if (n < sizeof(row.head))
			return refuse(&row, "is too short");
		memcpy(&row.head, data, sizeof(row.head));
		if (row.head.bytes < sizeof(row.head) || row.head.bytes > n ||
		    row.head.fields_bytes > row.head.bytes - sizeof(row.head))
			return refuse(&row, "has a size that cannot be");
		row.at = data + sizeof(row.head);
		row.end = data + row.head.bytes;
		r = add_row(&row);
		rows->n++;
		data += row.head.bytes;
		n -= row.head.bytes;
	}
	return r;
}

void rows_connect(struct rows *rows)
{
	struct record *rec = rows->rec;

	for (uint64_t i = 0; i < rec->n_ops; i++)
		rec->ops[i].of = record_find_comm(rec, rec->ops[i].comm);
}

const struct record_comm *record_find_comm(const struct record *rec, uint32_t number)
{
	uint64_t low = 0, high = rec->n_comms;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (rec->comms[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low < rec->n_comms && rec->comms[low].number == number ? &rec->comms[low] : NULL;
}

void record_deinit(struct record *rec)
{
	while (rec->lists) {
		struct record_lists *next = rec->lists->next;

		free(rec->lists);
		rec->lists = next;
	}
	free(rec->comms);
	free(rec->ops);
	free(rec->points);
	*rec = (struct record){0};
}
