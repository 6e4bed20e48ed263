/* See tuner.h. A line is
 *
 *   kind,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks[,pipe_ops[,registered]]
 *
 * with -1 for "NCCL's own" channels and for any number of the others. The last two choose among
 * calls that nbox does not tell apart: a line that asks for more than one op at a time, or for
 * registered buffers, never matches. Blanks around cells do not count, '#' begins a comment line.
 */
#include "tuner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define MAX_FILE (1 << 20)
#define FIELDS_LEAST 8
#define FIELDS_MOST 10
#define TUNER_ALGO_WORDS "tree|ring|collnet_direct|collnet_chain|nvls|nvls_tree|pat"

struct cell {
	const char *p;
	size_t n;
};

struct line {
	const struct nbox_host *host;
	const char *name; /* of the file */
	unsigned long number;
	struct cell cells[FIELDS_MOST];
	size_t n_cells;
};

static int wrong(const struct line *l, size_t column, const char *must)
{
	const struct cell *c = &l->cells[column];

	l->host->error(l->host, "%.200s:%lu: column %zu is '%.*s', it must be %s", l->name,
		       l->number, column + 1, (int)(c->n < 64 ? c->n : 64), c->p, must);
	return -1;
}

static int take_word(const struct line *l, size_t column, const char *words, uint32_t *ret)
{
	int i = words_find(words, l->cells[column].p, l->cells[column].n);

	if (i < 0)
		return wrong(l, column, words);
	*ret = (uint32_t)i;
	return 0;
}

static int take_number(const struct line *l, size_t column, int64_t least, int64_t *ret)
{
	const struct cell *c = &l->cells[column];
	char text[24], *end;

	if (c->n == 0 || c->n >= sizeof(text))
		return wrong(l, column, "a whole number");
	memcpy(text, c->p, c->n);
	text[c->n] = '\0';
	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (*end || errno || *ret < least)
		return wrong(l, column, least < 0 ? "a whole number or -1" : "a whole number");
	return 0;
}

/* Return: as split_line(). */
static int split(struct line *l, const char *p, const char *end)
{
	l->n_cells = 0;
	for (;;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;

		if (l->n_cells == FIELDS_MOST)
			break;
		while (p < stop && (*p == ' ' || *p == '\t'))
			p++;
		while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
			stop--;
		l->cells[l->n_cells++] = (struct cell){p, (size_t)(stop - p)};
		if (!comma && l->n_cells >= FIELDS_LEAST)
			return 0;
		if (!comma)
			break;
		p = comma + 1;
	}
	l->host->error(l->host,
		       "%.200s:%lu: a line has 8 to 10 columns: kind, min_bytes, max_bytes, "
		       "algorithm, protocol, channels, nodes, ranks, pipe_ops, registered",
		       l->name, l->number);
	return -1;
}

/* Return: 1 when the rule can match; 0; -1 with the sentence. */
static int parse_line(const struct line *l, struct tuner_rule *ret)
{
	int64_t low, high, pipe_ops = -1, is_registered = -1;

	if (take_word(l, 0, KIND_WORDS, &ret->kind) < 0 || take_number(l, 1, 0, &low) < 0 ||
	    take_number(l, 2, 0, &high) < 0 || take_word(l, 3, TUNER_ALGO_WORDS, &ret->algo) < 0 ||
	    take_word(l, 4, PROTO_WORDS, &ret->proto) < 0 ||
	    take_number(l, 5, -1, &ret->n_channels) < 0 ||
	    take_number(l, 6, -1, &ret->n_nodes) < 0 || take_number(l, 7, -1, &ret->n_ranks) < 0)
		return -1;
	if (ret->n_channels == 0 || ret->n_channels > 64)
		return wrong(l, 5, "1 to 64, or -1");
	if (l->n_cells > 8 && take_number(l, 8, -1, &pipe_ops) < 0)
		return -1;
	if (l->n_cells > 9 && take_number(l, 9, -1, &is_registered) < 0)
		return -1;
	ret->min_bytes = (uint64_t)low;
	ret->max_bytes = (uint64_t)high;
	return (pipe_ops == -1 || pipe_ops == 1) && is_registered != 1;
}

static int add(const struct nbox_host *host, struct tuner *t, const struct tuner_rule *rule)
{
	struct tuner_rule *more = realloc(t->rules, (t->n + 1) * sizeof(*more));

	if (!more) {
		host->error(host, "out of memory");
		return -1;
	}
	t->rules = more;
	t->rules[t->n++] = *rule;
	return 0;
}

int tuner_parse(const struct nbox_host *host, const char *name, const char *text, size_t n,
		struct tuner *ret)
{
	struct line l = {.host = host, .name = name};
	struct tuner t = {NULL, 0};
	const char *p = text, *end = text + n;
	int r = 0;

	while (p < end && r >= 0) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		struct tuner_rule rule;
		size_t blanks;

		stop = stop ? stop : end;
		for (blanks = 0; p + blanks < stop && strchr(" \t\r", p[blanks]) && p[blanks];)
			blanks++;
		l.number++;
		if (p + blanks < stop && p[blanks] != '#') {
			r = split(&l, p, stop);
			if (r == 0)
				r = parse_line(&l, &rule);
			if (r == 1)
				r = add(host, &t, &rule);
		}
		p = stop + 1;
	}
	if (r < 0) {
		tuner_deinit(&t);
		return -1;
	}
	*ret = t;
	return 0;
}

int tuner_read(const struct nbox_host *host, const char *path, struct tuner *ret)
{
	char *text;
	size_t n;
	FILE *f;
	int r = -1;

	*ret = (struct tuner){NULL, 0};
	if (!path)
		return 0;
	f = fopen(path, "re");
	if (!f) {
		host->error(host, "tuner=%.200s: %s", path, strerror(errno));
		return -1;
	}
	text = malloc(MAX_FILE + 1);
	n = text ? fread(text, 1, MAX_FILE + 1, f) : 0;
	if (!text)
		host->error(host, "out of memory");
	else if (ferror(f))
		host->error(host, "tuner=%.200s: cannot be read", path);
	else if (n > MAX_FILE)
		host->error(host, "tuner=%.200s: it is larger than 1 MiB", path);
	else
		r = tuner_parse(host, path, text, n, ret);
	free(text);
	fclose(f);
	return r;
}

void tuner_deinit(struct tuner *t)
{
	free(t->rules);
	*t = (struct tuner){NULL, 0};
}

const struct tuner_rule *tuner_find(const struct tuner *t, uint32_t kind, uint64_t bytes,
				    uint32_t n_nodes, uint32_t n_ranks)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct tuner_rule *r = &t->rules[i];

		if (r->kind == kind && bytes >= r->min_bytes && bytes <= r->max_bytes &&
		    (r->n_nodes == -1 || r->n_nodes == (int64_t)n_nodes) &&
		    (r->n_ranks == -1 || r->n_ranks == (int64_t)n_ranks))
			return r;
	}
	return NULL;
}
