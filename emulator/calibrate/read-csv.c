/* CSV, as the delay model `table` has it and with ranks and nodes: the first line that is neither
 * empty nor a comment names the columns: bytes; one of ns, us, ms, s; perhaps kind, ranks, nodes.
 * Other columns are passed over. bytes is nccl-tests' size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "calibrate/reader.h"

enum column { KIND, BYTES, RANKS, NODES, NS, US, MS, S, OTHER };

static const char *const names[OTHER] = {"kind", "bytes", "ranks", "nodes", "ns", "us", "ms", "s"};
static const double in_ns[] = {[NS] = 1, [US] = 1e3, [MS] = 1e6, [S] = 1e9};

#define COLUMNS_MAX 32

struct table {
	enum column columns[COLUMNS_MAX];
	size_t n;
};

/* Cuts @line at commas; the blanks around a cell do not count. Return: their number; 0: none, or
 * too many. */
static size_t cells_of(char *line, char *cells[COLUMNS_MAX])
{
	size_t n = 0;

	for (char *cell; (cell = strsep(&line, ","));) {
		size_t len;

		cell += strspn(cell, " \t");
		for (len = strlen(cell); len && strchr(" \t\r", cell[len - 1]); len--)
			cell[len - 1] = '\0';
		if (n == COLUMNS_MAX)
			return 0;
		cells[n++] = cell;
	}
	return n;
}

static int take_head(struct reader *r, struct table *t, char **cells, size_t n)
{
	size_t seen[OTHER + 1] = {0};

	t->n = n;
	for (size_t i = 0; i < n; i++) {
		t->columns[i] = OTHER;
		for (enum column c = KIND; c < OTHER; c++)
			if (strcasecmp(cells[i], names[c]) == 0)
				t->columns[i] = c;
		seen[t->columns[i]]++;
	}
	for (enum column c = KIND; c < OTHER; c++)
		if (seen[c] > 1)
			return reader_wrong(r, "the column %s stands there twice", names[c]);
	if (!seen[BYTES] || seen[NS] + seen[US] + seen[MS] + seen[S] != 1)
		return reader_wrong(
			r,
			"the columns must have bytes, and one of ns, us, ms and s: what was measured");
	return 0;
}

static int take_bytes(struct reader *r, const char *cell, double *ret)
{
	struct err why;
	uint64_t bytes;

	if (!cell[strspn(cell, "0123456789.eE+")])
		return reader_number(r, "bytes", cell, ret);
	if (units_bytes(cell, &bytes, &why) < 0 || !bytes)
		return reader_wrong(r, "bytes: '%.40s' is no size", cell);
	*ret = (double)bytes;
	return 0;
}

static int take_count(struct reader *r, const char *what, const char *cell, uint32_t *ret)
{
	double v;

	if (reader_number(r, what, cell, &v) < 0)
		return -EINVAL;
	if (v > 1e9 || v != (double)(uint32_t)v)
		return reader_wrong(r, "%s: '%.40s' is no whole number up to 1e9", what, cell);
	*ret = (uint32_t)v;
	return 0;
}

static int take_row(struct reader *r, const struct table *t, char **cells, size_t n)
{
	struct sample s = {.proto = CURVE_ANY_PROTO};
	int kind = -1, bad = 0;

	if (n != t->n)
		return reader_wrong(r, "%zu cells; there are %zu columns", n, t->n);
	for (size_t i = 0; i < n && bad == 0; i++) {
		enum column c = t->columns[i];

		if (c == KIND) {
			kind = coll_kind_parse(cells[i]);
			if (kind < 0)
				return reader_wrong(r, "nbox knows no collective '%.40s'",
						    cells[i]);
		} else if (c == BYTES) {
			bad = take_bytes(r, cells[i], &s.bytes);
		} else if (c == RANKS) {
			bad = take_count(r, "ranks", cells[i], &s.n_ranks);
		} else if (c == NODES) {
			bad = take_count(r, "nodes", cells[i], &s.n_nodes);
		} else if (c != OTHER) {
			bad = reader_number(r, names[c], cells[i], &s.ns);
			s.ns *= in_ns[c];
		}
	}
	return bad ? bad : reader_add(r, kind, s);
}

int read_csv(struct reader *r)
{
	char line[READ_LINE_MAX], *cells[COLUMNS_MAX];
	struct table t = {.n = 0};
	int n;

	while ((n = reader_line(r, line)) == 1) {
		size_t n_cells;

		if (line[0] == '#' || !line[strspn(line, " \t\r")])
			continue;
		n_cells = cells_of(line, cells);
		if (!n_cells)
			n = reader_wrong(r, "more than %d cells", COLUMNS_MAX);
		else
			n = t.n ? take_row(r, &t, cells, n_cells)
				: take_head(r, &t, cells, n_cells);
		if (n < 0)
			return n;
	}
	return n;
}
