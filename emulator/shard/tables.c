#include "shard/tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CELLS_MAX 64

enum column { ROWS, WIDTH, LOOKUPS, SHARES, OTHER = SHARES + REUSE_BINS };

struct reader {
	const char *file;
	unsigned long line;
	struct err *err;
	enum column columns[CELLS_MAX];
	uint32_t n_columns;
	struct shard_table *tables; /* owned */
	uint32_t n;
};

double table_bytes(const struct shard_table *t)
{
	return 4 * t->rows * t->width;
}

/* Return: how many; 0: too many. */
static uint32_t cut(char *line, char *cells[CELLS_MAX])
{
	uint32_t n = 0;

	for (char *cell; (cell = strsep(&line, ","));) {
		size_t len;

		cell += strspn(cell, " \t");
		for (len = strlen(cell); len && strchr(" \t\r", cell[len - 1]); len--)
			cell[len - 1] = '\0';
		if (n == CELLS_MAX)
			return 0;
		cells[n++] = cell;
	}
	return n;
}

static enum column column_of(const char *name)
{
	static const char *const names[] = {"E", "D", "L"};
	char *end;
	unsigned long bin;

	for (enum column c = ROWS; c < SHARES; c++)
		if (strcasecmp(name, names[c]) == 0)
			return c;
	bin = strncasecmp(name, "rf", 2) == 0 ? strtoul(name + 2, &end, 10) : 0;
	return bin >= 1 && bin <= REUSE_BINS && !*end ? SHARES + (enum column)(bin - 1) : OTHER;
}

static int take_head(struct reader *r, char **cells, uint32_t n)
{
	uint32_t seen[OTHER + 1] = {0}, n_shares = 0;

	for (uint32_t i = 0; i < n; i++) {
		r->columns[i] = column_of(cells[i]);
		seen[r->columns[i]]++;
	}
	for (enum column c = ROWS; c < OTHER; c++) {
		if (seen[c] > 1 || (c < SHARES && !seen[c]))
			return err_set(r->err, EINVAL,
				       "%s:%lu: the columns must have E (rows), D (width) and L "
				       "(look-ups of a bag), each once",
				       r->file, r->line);
		n_shares += c >= SHARES && seen[c];
	}
	if (n_shares && n_shares != REUSE_BINS)
		return err_set(r->err, EINVAL,
			       "%s:%lu: %u columns of reuse factors; it takes rf1 to rf%d", r->file,
			       r->line, n_shares, REUSE_BINS);
	r->n_columns = n;
	return 0;
}

static int take_number(struct reader *r, const char *word, double least, double most, double *ret)
{
	char *end;
	double v = strtod(word, &end);

	if (end == word || *end || !(v >= least && v <= most))
		return err_set(r->err, EINVAL, "%s:%lu: '%.40s' is no number from %g to %g",
			       r->file, r->line, word, least, most);
	*ret = v;
	return 0;
}

static int take_row(struct reader *r, char **cells, uint32_t n)
{
	struct shard_table t = {.rows = 0};
	int bad = 0;

	if (n != r->n_columns)
		return err_set(r->err, EINVAL, "%s:%lu: %u cells; there are %u columns", r->file,
			       r->line, n, r->n_columns);
	if (r->n == TABLES_MAX)
		return err_set(r->err, EINVAL, "%s:%lu: more than %u tables", r->file, r->line,
			       TABLES_MAX);
	for (uint32_t i = 0; i < n && !bad; i++) {
		enum column c = r->columns[i];

		if (c == ROWS)
			bad = take_number(r, cells[i], 1, 1e12, &t.rows);
		else if (c == WIDTH)
			bad = take_number(r, cells[i], 1, 1e6, &t.width);
		else if (c == LOOKUPS)
			bad = take_number(r, cells[i], 0, 1e9, &t.lookups);
		else if (c < OTHER)
			bad = take_number(r, cells[i], 0, 1, &t.reuse.shares[c - SHARES]);
	}
	if (bad)
		return bad;
	if ((r->n & (r->n - 1)) == 0) { /* it is full: 0, 1, 2, 4, ... */
		struct shard_table *more =
			realloc(r->tables, (r->n ? 2 * r->n : 1) * sizeof(*more));

		if (!more)
			return err_set(r->err, ENOMEM, "out of memory");
		r->tables = more;
	}
	r->tables[r->n++] = t;
	return 0;
}

int tables_read(const char *file, char *text, struct shard_table **ret, uint32_t *ret_n,
		struct err *err)
{
	struct reader r = {.file = file, .err = err};
	int bad = 0;

	for (char *line; bad == 0 && (line = strsep(&text, "\n"));) {
		char *cells[CELLS_MAX];
		uint32_t n;

		r.line++;
		if (line[0] == '#' || !line[strspn(line, " \t\r")])
			continue;
		n = cut(line, cells);
		bad = !n ? err_set(err, EINVAL, "%s:%lu: more than %d cells", file, r.line,
				   CELLS_MAX)
		      : r.n_columns ? take_row(&r, cells, n)
				    : take_head(&r, cells, n);
	}
	if (bad == 0 && !r.n)
		bad = err_set(err, EINVAL,
			      "%s: no table: a line with the columns E,D,L, then a line a table",
			      file);
	if (bad < 0) {
		free(r.tables);
		return bad;
	}
	*ret = r.tables;
	*ret_n = r.n;
	return 0;
}
