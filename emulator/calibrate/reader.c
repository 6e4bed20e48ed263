/* See reader.h. */
#include "calibrate/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

int reader_wrong(struct reader *r, const char *fmt, ...)
{
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(r->err, EINVAL, "%s:%lu: %s", r->file, r->line, plain_text(what));
}

int reader_line(struct reader *r, char line[READ_LINE_MAX])
{
	const char *end;
	size_t n;

	if (r->p == r->end)
		return 0;
	r->line++;
	end = memchr(r->p, '\n', (size_t)(r->end - r->p));
	n = (size_t)((end ? end : r->end) - r->p);
	if (n >= READ_LINE_MAX || memchr(r->p, '\0', n))
		return reader_wrong(r, "the line is %s",
				    n >= READ_LINE_MAX ? "too long" : "no text");
	memcpy(line, r->p, n);
	line[n] = '\0';
	r->p += n + (end != NULL);
	return 1;
}

size_t reader_words(char *line, char *words[READ_WORDS_MAX])
{
	size_t n = 0;

	for (char *save, *w = strtok_r(line, " \t\r", &save); w && n < READ_WORDS_MAX;
	     w = strtok_r(NULL, " \t\r", &save))
		words[n++] = w;
	return n;
}

int reader_number(struct reader *r, const char *what, const char *word, double *ret)
{
	char *end;
	double v = strtod(word, &end);

	if (end == word || *end || !(v > 0 && v <= 1e15))
		return reader_wrong(r, "%s: '%.40s' is no number above 0", what, word);
	*ret = v;
	return 0;
}

/* What the text says and what the user says. */
static int agree(struct reader *r, const char *what, const char *flag, uint32_t hint,
		 uint32_t *of_text)
{
	if (!*of_text && !hint)
		return reader_wrong(r, "on how many %s? The file does not say: %s N", what, flag);
	if (*of_text && hint && *of_text != hint)
		return reader_wrong(r, "measured on %u %s, not on %u (%s)", *of_text, what, hint,
				    flag);
	if (!*of_text)
		*of_text = hint;
	return 0;
}

int reader_add(struct reader *r, int kind, struct sample s)
{
	int wanted = r->hints->kind;

	if (kind >= 0 && wanted >= 0 && kind != wanted)
		return 0;
	if (kind < 0 && wanted < 0)
		return reader_wrong(
			r,
			"of which collective? The file does not say: --coll allreduce, or another");
	if (agree(r, "ranks", "--ranks", r->hints->n_ranks, &s.n_ranks) < 0 ||
	    agree(r, "nodes", "--nodes", r->hints->n_nodes, &s.n_nodes) < 0)
		return -EINVAL;
	if (s.n_ranks < 2 || s.n_nodes > s.n_ranks)
		return reader_wrong(r, "%u ranks on %u nodes", s.n_ranks, s.n_nodes);
	s.kind = (uint32_t)(kind >= 0 ? kind : wanted);
	return samples_add(r->to, &s);
}
