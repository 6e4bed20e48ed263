/* See read-record.h. An op has a row for each real rank: it began when the last of them had
 * arrived, and was over when it was over at the last. */
#include "nbox/fit/read-record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/record-read.h"

static int by_number(const void *a, const void *b)
{
	const struct record_op *x = *(const struct record_op *const *)a,
			       *y = *(const struct record_op *const *)b;

	return (x->number > y->number) - (x->number < y->number);
}

/* @rows: of one op. Return: 0, also where there is nothing to learn; -ENOMEM. */
static int take_op(const struct record_op *const *rows, uint64_t n, const struct read_hints *hints,
		   struct samples *to)
{
	const struct record_op *op = rows[0];
	uint64_t begin = 0, end = 0;
	struct sample s;

	if (!op->of || op->of->n_real != n || n < 2 || op->kind >= COLL_SENDRECV || !op->bytes ||
	    (hints->kind >= 0 && op->kind != (uint32_t)hints->kind))
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!rows[i]->local_done_ns)
			return 0;
		begin = rows[i]->arrive_ns > begin ? rows[i]->arrive_ns : begin;
		end = rows[i]->local_done_ns > end ? rows[i]->local_done_ns : end;
	}
	if (end <= begin)
		return 0;
	s = (struct sample){.kind = op->kind,
			    .n_ranks = (uint32_t)n,
			    .n_nodes = hints->n_nodes ? hints->n_nodes : 1,
			    .proto = CURVE_ANY_PROTO,
			    .bytes = sample_size(op->kind, (double)op->bytes, (uint32_t)n),
			    .ns = (double)(end - begin)};
	return samples_add(to, &s);
}

static int take_ops(const struct record *rec, const struct read_hints *hints, struct samples *to)
{
	CLEANUP(freep)
	const struct record_op **rows = calloc(rec->n_ops + 1, sizeof(*rows));
	uint64_t n;
	int r = rows ? 0 : -ENOMEM;

	for (uint64_t i = 0; r == 0 && i < rec->n_ops; i++)
		rows[i] = &rec->ops[i];
	if (r == 0)
		qsort(rows, rec->n_ops, sizeof(*rows), by_number);
	for (uint64_t i = 0; r == 0 && i < rec->n_ops; i += n) {
		for (n = 1; i + n < rec->n_ops && rows[i + n]->number == rows[i]->number;)
			n++;
		r = take_op(rows + i, n, hints, to);
	}
	return r;
}

int read_record(const char *dir, const struct read_hints *hints, struct samples *ret,
		struct err *err)
{
	char path[PATH_MAX];
	size_t before = ret->n;
	struct record rec;
	int r;

	snprintf(path, sizeof(path), "%s/record.nbox", dir);
	r = record_load(path, &rec, err);
	if (r < 0)
		return r;
	r = take_ops(&rec, hints, ret);
	record_deinit(&rec);
	if (r < 0)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	if (ret->n == before)
		return err_set(
			err, EINVAL,
			"%s: no collective of this run went among two or more real ranks, so "
			"nothing was measured; its other times are a model's",
			dir);
	return 0;
}
