/* table: op times from a CSV file, between its points piecewise linear in bytes.
 *
 *   # measured on the old cluster with nccl-tests
 *   kind,bytes,us
 *   allreduce,8,21.5
 *   allreduce,1048576,55
 *   allgather,4M,310.25
 *
 * The first line that is neither empty nor a comment names the columns, in any
 * order: bytes; one of ns, us, ms, s (bare numbers) or time (with unit, "21.5us");
 * and kind, or none: then the table is for all kinds. The kind "all" stands for
 * those that have no lines of their own. bytes is a bare number or has a unit; it is
 * nccl-tests' size: for AllGather, ReduceScatter, AllToAll, Gather and Scatter
 * the bytes of the call times the ranks. Within a kind the sizes must rise.
 *
 * Below its first point a kind takes that point's time. Above the last, time rises
 * as between the last two, and never falls; from one point alone it rises in
 * proportion. A kind without lines is no answer: the run stops with an error. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox-delaymodel.h"

#define N_KINDS (NBOX_SENDRECV + 1)
#define ALL_KINDS 0 /* curve 0; kind k is curve k + 1 */
#define MAX_COLUMNS 3
#define MAX_FILE (UINT64_C(64) << 20)
#define MAX_CELL 128

struct point {
	double bytes, ns;
};

struct curve {
	struct point *points; /* owned, bytes strictly rise */
	size_t n, capacity;
};

struct table {
	struct curve curves[N_KINDS + 1];
};

enum column { COL_KIND, COL_BYTES, COL_NS, COL_US, COL_MS, COL_S, COL_TIME };
#define COLUMNS "kind|bytes|ns|us|ms|s|time"

static const double column_ns[] = {[COL_NS] = 1, [COL_US] = 1e3, [COL_MS] = 1e6, [COL_S] = 1e9};

/* Where the parser is. Lines and columns (in characters) count from 1. */
struct cursor {
	const struct nbox_host *host;
	const char *file;
	const char *p, *end; /* what is left */
	const char *line_start;
	unsigned long line;
	uint32_t columns[MAX_COLUMNS];
	size_t n_columns;
};

/* --- cells ----------------------------------------------------------------- */

struct cell {
	char text[MAX_CELL];
	char place[256]; /* "file:line:column" */
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int bad_cell(const struct cursor *c, const struct cell *cell, const char *what)
{
	c->host->error(c->host, "%s: '%s' %s", cell->place, cell->text, what);
	return -1;
}

/* Takes a cell and the comma after it. The blanks around it do not count.
 * Return: 1 when a comma followed, 0 at the end of the line, -1. */
static int take_cell(struct cursor *c, struct cell *ret)
{
	const char *start, *stop;
	size_t len;
	int more;

	while (c->p < c->end && is_blank(*c->p))
		c->p++;
	start = c->p;
	while (c->p < c->end && *c->p != ',' && *c->p != '\n')
		c->p++;
	stop = c->p;
	more = c->p < c->end && *c->p == ',';
	if (c->p < c->end)
		c->p++;
	if (!more && stop > start && stop[-1] == '\r')
		stop--;
	while (stop > start && is_blank(stop[-1]))
		stop--;
	snprintf(ret->place, sizeof(ret->place), "%.200s:%lu:%lu", c->file, c->line,
		 (unsigned long)(start - c->line_start) + 1);
	len = (size_t)(stop - start);
	if (len >= sizeof(ret->text) || memchr(start, '\0', len)) {
		c->host->error(c->host, "%s: the cell is %s", ret->place,
			       len >= sizeof(ret->text) ? "too long" : "no text");
		return -1;
	}
	memcpy(ret->text, start, len);
	ret->text[len] = '\0';
	if (len == 0)
		return bad_cell(c, ret, "is empty");
	return more;
}

/* Skips empty lines and comments. Return: whether there is a line. */
static int next_line(struct cursor *c)
{
	for (;;) {
		const char *p = c->p;

		c->line++;
		c->line_start = p;
		while (p < c->end && (is_blank(*p) || *p == '\r'))
			p++;
		if (p == c->end)
			return 0;
		if (*p != '#' && *p != '\n')
			return 1;
		while (p < c->end && *p != '\n')
			p++;
		if (p == c->end)
			return 0;
		c->p = p + 1;
	}
}

/* Whether the text is a number without unit, sign or percentage. */
static int is_bare(const char *text)
{
	return text[strspn(text, "0123456789.")] == '\0';
}

static int parse_bytes(const struct cursor *c, const struct cell *cell, double *ret)
{
	const struct nbox_host *h = c->host;
	uint64_t bytes = 0;
	int r = is_bare(cell->text) ? h->parse_count(h, cell->place, cell->text, &bytes)
				    : h->parse_bytes(h, cell->place, cell->text, &bytes);

	*ret = (double)bytes;
	return r;
}

static int parse_time(const struct cursor *c, const struct cell *cell, uint32_t column, double *ret)
{
	const struct nbox_host *h = c->host;

	if (column == COL_TIME)
		return h->parse_time(h, cell->place, cell->text, ret);
	if (!is_bare(cell->text))
		return bad_cell(c, cell, "is no bare number; the head of its column is the unit");
	if (h->parse_ratio(h, cell->place, cell->text, ret) < 0)
		return -1;
	*ret *= column_ns[column];
	return 0;
}

/* --- lines ----------------------------------------------------------------- */

static int has_column(const struct cursor *c, uint32_t first, uint32_t last)
{
	size_t i;

	for (i = 0; i < c->n_columns; i++)
		if (c->columns[i] >= first && c->columns[i] <= last)
			return 1;
	return 0;
}

static int parse_head(struct cursor *c)
{
	struct cell cell;
	int more = 1;

	while (more == 1) {
		uint32_t column = 0;

		more = take_cell(c, &cell);
		if (more < 0 ||
		    c->host->parse_choice(c->host, cell.place, cell.text, COLUMNS, &column) < 0)
			return -1;
		if (has_column(c, column, column) ||
		    (column >= COL_NS && has_column(c, COL_NS, COL_TIME)))
			return bad_cell(c, &cell, "is one column too many of this sort");
		c->columns[c->n_columns++] = column; /* at most one of a sort: three */
	}
	if (!has_column(c, COL_BYTES, COL_BYTES) || !has_column(c, COL_NS, COL_TIME)) {
		c->host->error(c->host,
			       "%s:%lu: the columns must have bytes, and time or ns, us, ms or s",
			       c->file, c->line);
		return -1;
	}
	return 0;
}

static int add_point(struct curve *curve, struct point point)
{
	if (curve->n == curve->capacity) {
		size_t capacity = curve->capacity ? curve->capacity * 2 : 16;
		struct point *points = realloc(curve->points, capacity * sizeof(*points));

		if (!points)
			return -1;
		curve->points = points;
		curve->capacity = capacity;
	}
	curve->points[curve->n++] = point;
	return 0;
}

static int parse_line(struct cursor *c, struct table *t)
{
	struct point point = {0, 0};
	uint32_t kind = ALL_KINDS;
	struct cell cell;
	size_t i;

	for (i = 0; i < c->n_columns; i++) {
		uint32_t column = c->columns[i];
		int more = take_cell(c, &cell), r;

		if (more < 0)
			return -1;
		if (more != (i + 1 < c->n_columns))
			return bad_cell(c, &cell,
					more ? "is followed by more cells than columns"
					     : "is the last cell, but there are more columns");
		if (column == COL_KIND)
			r = c->host->parse_choice(c->host, cell.place, cell.text,
						  "all|" NBOX_OP_KINDS, &kind);
		else if (column == COL_BYTES)
			r = parse_bytes(c, &cell, &point.bytes);
		else
			r = parse_time(c, &cell, column, &point.ns);
		if (r < 0)
			return -1;
	}
	if (t->curves[kind].n &&
	    t->curves[kind].points[t->curves[kind].n - 1].bytes >= point.bytes) {
		c->host->error(c->host,
			       "%s:%lu: %.0f bytes after %.0f: the sizes of a kind must rise",
			       c->file, c->line, point.bytes,
			       t->curves[kind].points[t->curves[kind].n - 1].bytes);
		return -1;
	}
	if (add_point(&t->curves[kind], point) < 0) {
		c->host->error(c->host, "out of memory for %s", c->file);
		return -1;
	}
	return 0;
}

static void table_destroy(void *model)
{
	struct table *t = model;
	size_t i;

	if (!t)
		return;
	for (i = 0; i <= N_KINDS; i++)
		free(t->curves[i].points);
	free(t);
}

/* Return: the table; NULL after host->error(). */
static struct table *table_parse(const struct nbox_host *host, const char *file, const char *text,
				 size_t len)
{
	struct cursor c = {.host = host, .file = file, .p = text, .end = text + len};
	struct table *t = calloc(1, sizeof(*t));
	int n_lines = 0;

	if (!t) {
		host->error(host, "out of memory for %s", file);
		return NULL;
	}
	while (next_line(&c)) {
		if (n_lines++ == 0 ? parse_head(&c) < 0 : parse_line(&c, t) < 0) {
			table_destroy(t);
			return NULL;
		}
	}
	if (n_lines < 2) {
		host->error(host, "%s has no line with a time", file);
		table_destroy(t);
		return NULL;
	}
	return t;
}

/* --- the file -------------------------------------------------------------- */

/* Return: the file's text, the caller's to free(), NULL after host->error(). */
static char *read_file(const struct nbox_host *host, const char *file, size_t *ret_len)
{
	FILE *f = fopen(file, "rb");
	char *text = NULL, *grown;
	size_t len = 0, room = 0;

	if (!f) {
		host->error(host, "file: cannot open %s: %s", file, strerror(errno));
		return NULL;
	}
	do {
		if (len == room) {
			room = room ? room * 2 : 65536;
			grown = room <= MAX_FILE ? realloc(text, room) : NULL;
			if (!grown) {
				host->error(host, "file: %s is too large", file);
				goto failed;
			}
			text = grown;
		}
		len += fread(text + len, 1, room - len, f);
	} while (len == room);
	if (ferror(f)) {
		host->error(host, "file: cannot read %s: %s", file, strerror(errno));
		goto failed;
	}
	fclose(f);
	*ret_len = len;
	return text;
failed:
	fclose(f);
	free(text);
	return NULL;
}

/* The names of NBOX_OP_KINDS whose curve is there, or not. Return: @buf, empty: none. */
static const char *list_kinds(const struct table *t, int is_there, char *buf, size_t size)
{
	const char *name = NBOX_OP_KINDS;
	size_t kind, used = 0;

	buf[0] = '\0';
	for (kind = 0; kind < N_KINDS && used < size; kind++) {
		int len = (int)strcspn(name, "|");

		if ((t->curves[kind + 1].n != 0) == is_there)
			used += (size_t)snprintf(buf + used, size - used, "%s%.*s", used ? " " : "",
						 len, name);
		name += len + (name[len] == '|');
	}
	return buf;
}

/* What the run could only say when it is too late. */
static void warn_of_gaps(const struct nbox_host *host, const char *file, const struct table *t)
{
	char there[160], missing[160];

	if (t->curves[ALL_KINDS].n || !list_kinds(t, 0, missing, sizeof(missing))[0])
		return;
	host->warn(host,
		   "%s has times of %s; an op of another kind (%s) ends the job: lines of the kind "
		   "all would stand for those",
		   file, list_kinds(t, 1, there, sizeof(there)), missing);
}

static int table_create(const struct nbox_host *host, const struct nbox_next *next,
			const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	const char *file = nbox_value(kv, n_kv, "file");
	size_t len = 0;
	char *text = read_file(host, file, &len);
	struct table *t;

	(void)next;
	if (!text)
		return -1;
	t = table_parse(host, file, text, len);
	free(text);
	if (t)
		warn_of_gaps(host, file, t);
	*ret_model = t;
	return t ? 0 : -1;
}

/* --- answers --------------------------------------------------------------- */

static double curve_at(const struct curve *curve, double bytes)
{
	const struct point *p = curve->points, *a, *b;
	size_t low = 0, high = curve->n - 1;
	double slope;

	if (bytes <= p[0].bytes)
		return p[0].ns;
	if (curve->n == 1)
		return p[0].bytes > 0 ? p[0].ns * (bytes / p[0].bytes) : p[0].ns;
	while (high - low > 1) { /* p[low] < bytes; p[high] >= bytes or the last */
		size_t mid = low + (high - low) / 2;

		if (p[mid].bytes < bytes)
			low = mid;
		else
			high = mid;
	}
	a = &p[low];
	b = &p[high];
	if (bytes == b->bytes)
		return b->ns;
	slope = (b->ns - a->ns) / (b->bytes - a->bytes);
	if (bytes > b->bytes)
		return b->ns + fmax(slope, 0) * (bytes - b->bytes);
	return a->ns + slope * (bytes - a->bytes);
}

/* nccl-tests' size of the op. */
static double size_of(const struct nbox_op *op)
{
	switch (op->kind) {
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
	case NBOX_ALLTOALL:
	case NBOX_GATHER:
	case NBOX_SCATTER:
		return (double)op->bytes * op->n_ranks;
	default:
		return (double)op->bytes;
	}
}

static int table_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	const struct table *t = model;
	const struct curve *curve;

	if (op->kind >= N_KINDS)
		return 1;
	curve = &t->curves[op->kind + 1];
	if (!curve->n)
		curve = &t->curves[ALL_KINDS];
	if (!curve->n)
		return 1;
	*ret_ns = fmax(curve_at(curve, size_of(op)), 0);
	return 0;
}

static const struct nbox_param params[] = {
	{"file", "text", NULL, "CSV file with the columns kind, bytes and us (or ns, ms, s, time)"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "table",        .summary = "op times from a CSV file, piecewise linear in bytes",
	.flags = NBOX_UNIFORM,  .params = params,
	.create = table_create, .destroy = table_destroy,
	.op = table_op,
};
