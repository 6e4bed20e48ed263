/* See fitted-file.h. */
#include "fitted-file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox-delaymodel.h"

#define CURVES_MAX 4096
#define LINE_MAX_BYTES 512
#define MOST 1e15 /* bytes, us, GB/s */

struct reader {
	const char *file;
	const char *p, *end;
	unsigned long line;
	struct fitted *to;
	struct curve *curve; /* the one under way; NULL: the head */
	unsigned int seen;   /* bits of what the head or the curve had */
	char *sentence;
};

static int wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct reader *r, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(r->sentence, FITTED_SENTENCE, "%.100s:%lu: %s", r->file, r->line, what);
	return -1;
}

/* The number of @word among @choices ("a|b"); -1. */
static int choose(const char *word, const char *choices)
{
	for (int i = 0; *choices; i++) {
		size_t n = strcspn(choices, "|");

		if (strlen(word) == n && strncmp(word, choices, n) == 0)
			return i;
		choices += n + (choices[n] == '|');
	}
	return -1;
}

/* --- values ---------------------------------------------------------------- */

/* One number from @min to @max. *text is moved behind it. */
static int take_number(struct reader *r, const char *key, const char **text, double min, double max,
		       double *ret)
{
	char *end;
	double v = strtod(*text, &end);

	if (end == *text || !(v >= min && v <= max))
		return wrong(r, "%s: '%.60s' is no number from %g to %g", key, *text, min, max);
	*text = end + strspn(end, " ");
	*ret = v;
	return 0;
}

static int number(struct reader *r, const char *key, const char *text, double min, double max,
		  double *ret)
{
	if (take_number(r, key, &text, min, max, ret) < 0)
		return -1;
	return *text ? wrong(r, "%s: '%.60s' is more than a number", key, text) : 0;
}

static int count(struct reader *r, const char *key, const char *text, uint32_t *ret)
{
	double v;

	if (number(r, key, text, 1, 1e9, &v) < 0)
		return -1;
	if (v != floor(v))
		return wrong(r, "%s: %.60s is no whole number", key, text);
	*ret = (uint32_t)v;
	return 0;
}

static int add_point(struct reader *r, const char *key, const char *text,
		     struct curve_point **points, size_t *n)
{
	struct curve_point p, *more;

	if (take_number(r, key, &text, 1e-3, MOST, &p.bytes) < 0 ||
	    number(r, key, text, 1e-6, MOST, &p.ns) < 0)
		return -1;
	p.ns *= 1e3;
	if (*n && (*points)[*n - 1].bytes >= p.bytes)
		return wrong(r, "%s: %g bytes after %g: they must rise", key, p.bytes,
			     (*points)[*n - 1].bytes);
	if ((*n & (*n - 1)) == 0) { /* it is full: 0, 1, 2, 4, ... */
		more = realloc(*points, (*n ? 2 * *n : 1) * sizeof(*more));
		if (!more)
			return wrong(r, "out of memory");
		*points = more;
	}
	(*points)[(*n)++] = p;
	return 0;
}

/* --- lines ----------------------------------------------------------------- */

enum {
	HEAD_VERSION,
	HEAD_UNIT,
	HEAD_SOURCE,
	HEAD_DATE,
	HEAD_KEYS,
};
#define HEAD_NAMES "version|unit|source|date"

enum {
	KEY_RANKS,
	KEY_NODES,
	KEY_PROTO,
	KEY_FORM,
	KEY_GMAE,
	KEY_MAPE,
	KEY_MAX,
	KEY_LATENCY,
	KEY_BANDWIDTH,
	KEY_M1,
	KEY_M2,
	KEY_L,
	KEY_X0,
	KEY_K,
	KEY_B,
	KEY_KNOT,
	KEY_POINT,
};
#define KEY_NAMES \
	"ranks|nodes|proto|form|gmae|mape|max|latency_us|bandwidth_gbs|m1|m2|L|x0|k|b|knot|point"

#define BIT(key) (1u << (key))
#define NEEDED_BY_ALL (BIT(KEY_RANKS) | BIT(KEY_NODES) | BIT(KEY_FORM) | BIT(KEY_POINT))

static const struct {
	double min, max;
} ranges[] = {
	[KEY_GMAE] = {0, MOST},
	[KEY_MAPE] = {0, MOST},
	[KEY_MAX] = {0, MOST},
	[KEY_LATENCY] = {0, MOST},
	[KEY_BANDWIDTH] = {1e-9, MOST},
	[KEY_M1] = {1, MOST},
	[KEY_M2] = {1, MOST},
	[KEY_L] = {0, 10},
	[KEY_X0] = {-100, 100},
	[KEY_K] = {0, 10},
	[KEY_B] = {-20, 20},
};

static const unsigned int needed[CURVE_FORMS] = {
	[CURVE_ALPHABETA] = BIT(KEY_LATENCY) | BIT(KEY_BANDWIDTH),
	[CURVE_SIGMOID] = BIT(KEY_LATENCY) | BIT(KEY_BANDWIDTH) | BIT(KEY_M1) | BIT(KEY_M2) |
			  BIT(KEY_L) | BIT(KEY_X0) | BIT(KEY_K) | BIT(KEY_B),
	[CURVE_TABLE] = BIT(KEY_KNOT),
};

/* What ends: the head, or a curve. */
static int end_part(struct reader *r)
{
	const struct curve *c = r->curve;
	unsigned int missing;
	const char *name = c ? KEY_NAMES : HEAD_NAMES;

	missing = ~r->seen & (c ? NEEDED_BY_ALL | needed[c->form] : BIT(HEAD_KEYS) - 1);
	for (int key = 0; missing; key++, missing >>= 1) {
		if (missing & 1)
			return wrong(r, "what stands above has no %.*s", (int)strcspn(name, "|"),
				     name);
		name += strcspn(name, "|") + 1;
	}
	if (!c)
		return 0;
	if (c->n_ranks < 2 || c->n_nodes > c->n_ranks)
		return wrong(r, "%u ranks on %u nodes", c->n_ranks, c->n_nodes);
	if (c->form == CURVE_SIGMOID && !(c->m1 < c->m2))
		return wrong(r, "m1 (%g) must be below m2 (%g)", c->m1, c->m2);
	if (c->form == CURVE_SIGMOID && !(c->latency_ns > 0))
		return wrong(r, "latency_us must not be 0 in a sigmoid");
	if (c->form == CURVE_SIGMOID && c->L * c->k > CURVE_STEEPEST * (1 + 1e-9))
		return wrong(r, "L x k is %g: above %.4f more bytes would take less time",
			     c->L * c->k, CURVE_STEEPEST);
	return 0;
}

/* "[allreduce]" */
static int begin_curve(struct reader *r, char *line)
{
	size_t n = strlen(line);
	struct curve *more;
	int kind;

	if (end_part(r) < 0)
		return -1;
	if (line[n - 1] != ']')
		return wrong(r, "'%.60s' has no ']'", line);
	line[n - 1] = '\0';
	kind = choose(line + 1, NBOX_OP_KINDS);
	if (kind < 0)
		return wrong(r, "there is no kind '%.60s'; kinds: %s", line + 1, NBOX_OP_KINDS);
	if (r->to->n == CURVES_MAX)
		return wrong(r, "more than %d curves", CURVES_MAX);
	more = realloc(r->to->curves, (r->to->n + 1) * sizeof(*more));
	if (!more)
		return wrong(r, "out of memory");
	r->to->curves = more;
	r->curve = &more[r->to->n++];
	memset(r->curve, 0, sizeof(*r->curve));
	r->curve->kind = (uint32_t)kind;
	r->curve->proto = CURVE_ANY_PROTO;
	r->seen = 0;
	return 0;
}

static int take_text(struct reader *r, const char *key, const char *value, char *ret, size_t size)
{
	if (strlen(value) >= size)
		return wrong(r, "%s: longer than %zu letters", key, size - 1);
	strcpy(ret, value);
	return 0;
}

static int take_head(struct reader *r, int key, const char *value)
{
	double version;

	switch (key) {
	case HEAD_VERSION:
		if (number(r, "version", value, 0, MOST, &version) < 0)
			return -1;
		return version == FITTED_VERSION
			       ? 0
			       : wrong(r, "version %g; this nbox reads %d: fit again", version,
				       FITTED_VERSION);
	case HEAD_UNIT:
		return strcmp(value, FITTED_UNIT) == 0
			       ? 0
			       : wrong(r, "unit '%.60s'; there is only '" FITTED_UNIT "'", value);
	case HEAD_SOURCE:
		return take_text(r, "source", value, r->to->source, sizeof(r->to->source));
	case HEAD_DATE:
		return take_text(r, "date", value, r->to->date, sizeof(r->to->date));
	default:
		return wrong(r, "a key that does not belong in front of the first curve");
	}
}

static int take_word(struct reader *r, int key, const char *value)
{
	struct curve *c = r->curve;
	int word = choose(value, key == KEY_PROTO ? FITTED_PROTOS : "alphabeta|sigmoid|table");

	if (word < 0)
		return wrong(r, "'%.60s'; one of %s", value,
			     key == KEY_PROTO ? FITTED_PROTOS : "alphabeta|sigmoid|table");
	if (key == KEY_PROTO)
		c->proto = word ? (uint32_t)word - 1 : CURVE_ANY_PROTO;
	else
		c->form = (enum curve_form)word;
	return 0;
}

static int take_key(struct reader *r, int key, const char *name, const char *value)
{
	struct curve *c = r->curve;
	double *const numbers[] = {
		[KEY_GMAE] = &c->gmae,
		[KEY_MAPE] = &c->mape,
		[KEY_MAX] = &c->max,
		[KEY_LATENCY] = &c->latency_ns,
		[KEY_BANDWIDTH] = &c->bytes_per_ns,
		[KEY_M1] = &c->m1,
		[KEY_M2] = &c->m2,
		[KEY_L] = &c->L,
		[KEY_X0] = &c->x0,
		[KEY_K] = &c->k,
		[KEY_B] = &c->b,
	};
	if (key == KEY_KNOT)
		return add_point(r, name, value, &c->knots, &c->n_knots);
	if (key == KEY_POINT)
		return add_point(r, name, value, &c->points, &c->n_points);
	if (r->seen & BIT(key))
		return wrong(r, "%s stands there twice", name);
	if (key == KEY_RANKS || key == KEY_NODES)
		return count(r, name, value, key == KEY_RANKS ? &c->n_ranks : &c->n_nodes);
	if (key == KEY_PROTO || key == KEY_FORM)
		return take_word(r, key, value);
	if (number(r, name, value, ranges[key].min, ranges[key].max, numbers[key]) < 0)
		return -1;
	if (key == KEY_LATENCY)
		c->latency_ns *= 1e3;
	return 0;
}

static int take_line(struct reader *r, char *line)
{
	char *value = strstr(line, " = ");
	int key;

	if (line[0] == '#' || !line[0])
		return 0;
	if (line[0] == '[')
		return begin_curve(r, line);
	if (!value)
		return wrong(r, "'%.60s' is neither 'key = value' nor '[kind]'", line);
	*value = '\0';
	value += 3;
	key = choose(line, r->curve ? KEY_NAMES : HEAD_NAMES);
	if (key < 0)
		return wrong(r, "unknown key '%.60s'; keys: %s", line,
			     r->curve ? KEY_NAMES : HEAD_NAMES);
	if (r->curve ? take_key(r, key, line, value) < 0 : take_head(r, key, value) < 0)
		return -1;
	r->seen |= BIT(key);
	return 0;
}

/* The next line without its end and the blanks before that. Return: 1; 0: there is none; -1. */
static int next_line(struct reader *r, char line[LINE_MAX_BYTES])
{
	const char *end;
	size_t n;

	if (r->p == r->end)
		return 0;
	r->line++;
	end = memchr(r->p, '\n', (size_t)(r->end - r->p));
	n = (size_t)((end ? end : r->end) - r->p);
	if (n >= LINE_MAX_BYTES || memchr(r->p, '\0', n))
		return wrong(r, "the line is %s", n >= LINE_MAX_BYTES ? "too long" : "no text");
	memcpy(line, r->p, n);
	r->p += n + (end != NULL);
	while (n && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = '\0';
	return 1;
}

int fitted_parse(const char *file, const char *text, size_t len, struct fitted *ret,
		 char sentence[FITTED_SENTENCE])
{
	struct fitted to = {.curves = NULL};
	struct reader r = {
		.file = file, .p = text, .end = text + len, .to = &to, .sentence = sentence};
	char line[LINE_MAX_BYTES];
	int n;

	sentence[0] = '\0';
	while ((n = next_line(&r, line)) == 1 && take_line(&r, line) == 0)
		;
	if (n == 0 && end_part(&r) == 0) {
		if (to.n) {
			*ret = to;
			return 0;
		}
		wrong(&r, "there is no curve");
	}
	fitted_deinit(&to);
	return -1;
}

void fitted_deinit(struct fitted *f)
{
	for (size_t i = 0; i < f->n; i++)
		curve_deinit(&f->curves[i]);
	free(f->curves);
	f->curves = NULL;
	f->n = 0;
}
