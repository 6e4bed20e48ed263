/* See table.h. */
#include "kernels/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#define MAX_FILE (64u << 20)
#define MAX_NS 60e9
#define SHOWN 64 /* characters of a bad word */

/* --- patterns ------------------------------------------------------------------------------------
 */

/* After a mismatch only the last * may take one character more, so that no pattern takes long. */
bool kernel_pattern_fits(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		const char *literal = pattern + (*pattern == '\\' && pattern[1]);

		if (*pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (*pattern == '?' || (*literal && *literal == *name)) {
			pattern = *pattern == '?' ? pattern + 1 : literal + 1;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

char *kernel_pattern_escape(const char *name, char *buf)
{
	char *to = buf;

	for (const char *c = name; *c; c++) {
		bool is_edge = is_blank(*c) && (c == name || !c[1]);

		if ((unsigned char)*c < ' ' || *c == 0x7f || is_edge) {
			*to++ = '?';
			continue;
		}
		if (strchr("*?\\", *c) || (*c == '#' && c == name))
			*to++ = '\\';
		*to++ = *c;
	}
	*to = '\0';
	return buf;
}

/* --- rows ----------------------------------------------------------------------------------------
 */

void kernel_table_free(struct kernel_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n; i++)
		free(table->rows[i].pattern);
	free(table->rows);
	free(table);
}

/* A time or a card. */
static int take_cost(const char *text, struct kernel_row *row, struct err *err)
{
	int r;

	row->card = card_find(text);
	if (row->card)
		return 0;
	if (*text < '0' || *text > '9')
		return err_set(err, EINVAL,
			       "'%.*s' is neither a time such as 20us nor one of the cards %s",
			       SHOWN, text, card_names());
	r = units_time(text, &row->ns, err);
	if (r == 0 && row->ns >= MAX_NS)
		r = err_set(err, EINVAL, "'%.*s' is no time below a minute; write for example 20us",
			    SHOWN, text);
	return r;
}

static int add_row(struct kernel_table *table, const char *pattern, struct kernel_row row)
{
	if (table->n == table->capacity) {
		size_t capacity = 2 * table->capacity + 8;
		struct kernel_row *more =
			realloc(table->rows, capacity * sizeof(struct kernel_row));

		if (!more)
			return -ENOMEM;
		table->rows = more;
		table->capacity = capacity;
	}
	row.pattern = strdup(pattern);
	if (!row.pattern)
		return -ENOMEM;
	table->rows[table->n++] = row;
	return 0;
}

/* @line: without blanks at its ends; is changed. */
static int take_row(struct kernel_table *table, char *line, size_t length, struct err *err)
{
	struct kernel_row row = {.ns = 0};
	size_t cost = length, end;
	int r;

	while (cost > 0 && !is_blank(line[cost - 1]))
		cost--;
	end = cost;
	while (end > 0 && is_blank(line[end - 1]))
		end--;
	if (!end)
		return err_set(err, EINVAL,
			       "a row is a pattern of names, blanks and a time or a card, such as "
			       "'*gemm* 20us'");
	line[end] = '\0';
	if (table->n && strcmp(table->rows[table->n - 1].pattern, "*") == 0)
		return err_set(err, EINVAL,
			       "the row * before it fits every kernel; make that the last one");
	r = take_cost(line + cost, &row, err);
	return r == 0 ? add_row(table, line, row) : r;
}

int kernel_table_parse(const char *file, char *text, size_t n, struct kernel_table **ret,
		       struct err *err)
{
	CLEANUP(kernel_table_freep) struct kernel_table *table = calloc(1, sizeof(*table));
	unsigned long number = 0;
	char *end = text + n;
	int r = table ? 0 : -ENOMEM;

	if (r == 0 && memchr(text, '\0', n))
		return err_set(err, EINVAL, "%s: is no text, and no table of kernels", file);
	for (char *line = text, *next; r == 0 && line < end; line = next) {
		char *stop = strchr(line, '\n');

		stop = stop ? stop : end;
		next = stop + 1;
		number++;
		while (line < stop && is_blank(*line))
			line++;
		while (stop > line && is_blank(stop[-1]))
			stop--;
		*stop = '\0';
		if (line < stop && *line != '#')
			r = take_row(table, line, (size_t)(stop - line), err);
	}
	if (r < 0)
		return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for %s", file)
				    : err_prefix(err, r, "%s:%lu", file, number);
	if (!table->n || strcmp(table->rows[table->n - 1].pattern, "*") != 0)
		return err_set(err, EINVAL,
			       "%s:%lu: no row is for all other kernels: end the table with one "
			       "such as '* 5us'",
			       file, number ? number : 1);
	snprintf(table->what, sizeof(table->what), "kernels take the times of the table %s", file);
	*ret = steal_ptr(table);
	return 0;
}

static int open_file(const char *path, struct kernel_table **ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r = file_read(path, MAX_FILE, &text, &n, err);

	if (r == -ENOENT && !strchr(path, '/'))
		return err_set(err, EINVAL,
			       "'%.*s' is no time such as 20us, none of the cards %s, and no file: "
			       "nbox kernels makes a table",
			       SHOWN, path, card_names());
	return r == 0 ? kernel_table_parse(path, text, n, ret, err) : r;
}

bool kernel_table_is_file(const char *spec)
{
	return !card_find(spec) && (*spec < '0' || *spec > '9');
}

int kernel_table_open(const char *spec, struct kernel_table **ret, struct err *err)
{
	CLEANUP(kernel_table_freep) struct kernel_table *table = NULL;
	struct kernel_row row = {.card = card_find(spec)};
	int r;

	if (kernel_table_is_file(spec))
		return open_file(spec, ret, err);
	r = take_cost(spec, &row, err);
	if (r < 0)
		return r;
	table = calloc(1, sizeof(*table));
	if (!table || add_row(table, "*", row) < 0)
		return err_set(err, ENOMEM, "no memory");
	if (row.card)
		snprintf(table->what, sizeof(table->what),
			 "kernels take what their sizes and the data sheet of a card say (%s)",
			 spec);
	else
		snprintf(table->what, sizeof(table->what), "each kernel takes %.32s", spec);
	*ret = steal_ptr(table);
	return 0;
}

const struct kernel_row *kernel_table_find(const struct kernel_table *table, const char *name,
					   const char *second)
{
	const struct kernel_row *row = table->rows;

	while (!kernel_pattern_fits(row->pattern, name) &&
	       !(second && kernel_pattern_fits(row->pattern, second)))
		row++;
	return row;
}
