#include "shard/indices.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct lookup {
	uint32_t batch, table;
	uint64_t row;
};

struct reader {
	const char *file;
	unsigned long line;
	struct err *err;
	struct lookup *list; /* owned */
	size_t n, capacity;
};

static int take_number(struct reader *r, const char *word, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(word, &end, 10);
	if (!word[strspn(word, "0123456789")] && *word && !errno && *ret <= most)
		return 0;
	return err_set(r->err, EINVAL, "%s:%lu: '%.40s' is no whole number up to %llu", r->file,
		       r->line, word, (unsigned long long)most);
}

/* A bag without rows counts: its table is there. */
static int add(struct reader *r, uint32_t batch, uint32_t table, uint64_t row)
{
	if (r->n == r->capacity) {
		size_t capacity = 2 * r->capacity + 1024;
		struct lookup *more = realloc(r->list, capacity * sizeof(*more));

		if (!more)
			return err_set(r->err, ENOMEM, "out of memory");
		r->list = more;
		r->capacity = capacity;
	}
	r->list[r->n++] = (struct lookup){batch, table, row};
	return 0;
}

static int take_line(struct reader *r, char *line)
{
	uint64_t values[2] = {0, 0}, row;
	int n = 0, bad = 0;

	for (char *save, *w = strtok_r(line, " \t\r,", &save); w && !bad;
	     w = strtok_r(NULL, " \t\r,", &save), n++) {
		if (n < 2) {
			bad = take_number(r, w, UINT32_MAX, &values[n]);
			continue;
		}
		bad = take_number(r, w, UINT64_MAX - 1, &row);
		bad = bad ? bad : add(r, (uint32_t)values[0], (uint32_t)values[1], row);
	}
	if (bad || n == 0)
		return bad;
	if (n < 2)
		return err_set(r->err, EINVAL, "%s:%lu: a bag has a batch, a table and rows",
			       r->file, r->line);
	return n == 2 ? add(r, (uint32_t)values[0], (uint32_t)values[1], UINT64_MAX) : 0;
}

static int by_table(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	if (x->batch != y->batch)
		return x->batch < y->batch ? -1 : 1;
	return x->table < y->table ? -1 : x->table > y->table;
}

static int count(struct reader *r, struct reuse_of_table **ret, uint32_t *ret_n)
{
	CLEANUP(freep) uint64_t *rows = malloc((r->n + 1) * sizeof(*rows));
	CLEANUP(freep) struct reuse_of_table *list = NULL;
	uint32_t n = 0;

	qsort(r->list, r->n, sizeof(*r->list), by_table);
	for (size_t i = 0; i < r->n; i++)
		n += i == 0 || by_table(&r->list[i - 1], &r->list[i]);
	list = malloc((n + 1) * sizeof(*list));
	if (!rows || !list)
		return err_set(r->err, ENOMEM, "out of memory");
	n = 0;
	for (size_t from = 0, to; from < r->n; from = to) {
		size_t n_rows = 0;

		for (to = from; to < r->n && by_table(&r->list[from], &r->list[to]) == 0; to++)
			if (r->list[to].row != UINT64_MAX)
				rows[n_rows++] = r->list[to].row;
		list[n++] = (struct reuse_of_table){r->list[from].batch, r->list[from].table,
						    reuse_of(rows, n_rows)};
	}
	*ret = steal_ptr(list);
	*ret_n = n;
	return 0;
}

int indices_read(const char *file, char *text, struct reuse_of_table **ret, uint32_t *ret_n,
		 struct err *err)
{
	struct reader r = {.file = file, .err = err};
	int bad = 0;

	for (char *line; bad == 0 && (line = strsep(&text, "\n"));) {
		r.line++;
		if (line[0] != '#')
			bad = take_line(&r, line);
	}
	if (bad == 0 && !r.n)
		bad = err_set(err, EINVAL,
			      "%s: no bag: a line each, with its batch, its table and its rows",
			      file);
	bad = bad ? bad : count(&r, ret, ret_n);
	free(r.list);
	return bad;
}
