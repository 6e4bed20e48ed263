/* See skew.h. */
#include "calibrate/skew.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "calibrate/reader.h"

#define BYTES_MAX (UINT64_C(1) << 46) /* one to another: sums stay exact */

struct skew skew_of(const uint64_t *bytes, uint32_t n_ranks)
{
	struct skew skew = {.bytes = 0};
	double total = 0;

	for (uint32_t i = 0; i < n_ranks; i++) {
		uint64_t sent = 0, received = 0;

		for (uint32_t j = 0; j < n_ranks; j++) {
			if (j == i)
				continue;
			sent += bytes[(size_t)i * n_ranks + j];
			received += bytes[(size_t)j * n_ranks + i];
		}
		total += (double)sent;
		if (sent > skew.bytes || received > skew.bytes) {
			skew.rank = i;
			skew.is_receive = received > sent;
			skew.bytes = received > sent ? received : sent;
		}
	}
	skew.even = n_ranks ? total / n_ranks : 0;
	return skew;
}

static int take_cell(struct reader *r, const char *word, uint64_t *ret)
{
	struct err why;
	bool is_bare = !word[strspn(word, "0123456789")];

	if ((is_bare ? units_count(word, ret, &why) : units_bytes(word, ret, &why)) < 0 ||
	    *ret > BYTES_MAX)
		return reader_wrong(r, "'%.40s' is no size up to 64T", word);
	return 0;
}

/* Adds @line's cells behind @n others. Return: how many; -EINVAL; -ENOMEM. */
static int take_line(struct reader *r, char *line, uint64_t **cells, size_t n)
{
	int n_line = 0;

	line[strcspn(line, "#")] = '\0';
	for (char *save, *w = strtok_r(line, " \t\r,", &save); w;
	     w = strtok_r(NULL, " \t\r,", &save)) {
		size_t at = n + (size_t)n_line++;

		if (n_line > SKEW_RANKS_MAX)
			return reader_wrong(r, "more than %d ranks", SKEW_RANKS_MAX);
		if ((at & (at - 1)) == 0) { /* it is full: 0, 1, 2, 4, ... */
			uint64_t *more = realloc(*cells, (at ? 2 * at : 1) * sizeof(*more));

			if (!more)
				return -ENOMEM;
			*cells = more;
		}
		if (take_cell(r, w, &(*cells)[at]) < 0)
			return -EINVAL;
	}
	return n_line;
}

int skew_read(const char *file, char *text, uint64_t **ret_bytes, uint32_t *ret_n_ranks,
	      struct err *err)
{
	struct reader r = {.file = file, .err = err};
	CLEANUP(freep) uint64_t *cells = NULL;
	size_t n_ranks = 0, n_lines = 0;

	for (char *line; (line = strsep(&text, "\n"));) {
		int n;

		r.line++;
		n = take_line(&r, line, &cells, n_lines * n_ranks);
		if (n < 0)
			return n == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : n;
		if (!n)
			continue;
		if (n_lines++ && (size_t)n != n_ranks)
			return reader_wrong(&r, "%d numbers; the lines above have %zu", n, n_ranks);
		n_ranks = (size_t)n;
		if (n_lines > n_ranks)
			break;
	}
	if (n_ranks < 2 || n_lines != n_ranks)
		return reader_wrong(
			&r,
			"%zu numbers a line, but %zu lines: it takes a line for each of "
			"two or more ranks",
			n_ranks, n_lines);
	*ret_bytes = steal_ptr(cells);
	*ret_n_ranks = (uint32_t)n_ranks;
	return 0;
}
