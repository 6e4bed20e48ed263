/* See watch-text.h. Nothing of an answer reaches the terminal but plain text. */
#include "nbox/status/watch-text.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/json/json-file.h"

#define BOLD "\033[1m"
#define SOFT "\033[2m"
#define RED "\033[31m"
#define END "\033[0m"
#define NAME 13 /* columns of what stands before a line */
#define WAITS_MAX 64

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key, char *buf, size_t size)
{
	const char *s = json_string_value(json_object_get(o, key));

	snprintf(buf, size, "%s", s ? s : "");
	return plain_text(buf);
}

void watch_add_rate(struct watch *w, double rate)
{
	if (w->n_rates == WATCH_TIMES)
		memmove(w->rates, w->rates + 1, --w->n_rates * sizeof(w->rates[0]));
	w->rates[w->n_rates++] = rate;
}

int watch_take(struct watch *w, const char *json, struct err *err)
{
	json_error_t why;
	CLEANUP(json_freep) json_t *o = json_loads(json, 0, &why);
	double uptime = number(o, "uptime_s"), ops = number(o, "ops");

	if (!json_is_object(o))
		return err_set(err, EPROTO, "nboxd's answer is no JSON object (%s)",
			       o ? "another value" : why.text);
	if (w->uptime_s > 0 && uptime > w->uptime_s)
		watch_add_rate(w, fmax(0, ops - (double)w->n_ops) / (uptime - w->uptime_s));
	w->uptime_s = uptime;
	w->n_ops = (uint64_t)fmax(0, ops);
	return 0;
}

/* --- lines ----------------------------------------------------------------------------------- */

struct page {
	FILE *to;
	unsigned columns, rows; /* rows: that are left */
};

/* A line, cut at the screen's width. Bytes that continue a character have no width. */
static void line(struct page *p, const char *style, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void line(struct page *p, const char *style, const char *name, const char *fmt, ...)
{
	unsigned width = 0, own = name[0] ? NAME : 0;
	char rest[2048];
	va_list ap;

	if (p->rows == 0)
		return;
	va_start(ap, fmt);
	vsnprintf(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	plain_text(rest); /* a character may have been cut */
	if (own)
		fprintf(p->to, SOFT "%-*.*s" END, (int)own,
			(int)(p->columns < own ? p->columns : own), name);
	fputs(style, p->to);
	for (const char *c = rest; *c; c++) {
		width += ((unsigned char)*c & 0xc0) != 0x80;
		if (own + width > p->columns)
			break;
		fputc(*c, p->to);
	}
	fputs(style[0] ? END : "", p->to);
	fputc('\n', p->to);
	p->rows--;
}

/* The last values as one line of bars. */
static char *spark(const double *values, size_t n, unsigned columns, bool has_blocks, char *buf,
		   size_t size)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	double low = INFINITY, high = 0;
	size_t used = 0, first = n > columns ? n - columns : 0;

	buf[0] = '\0';
	for (size_t i = first; i < n; i++) {
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
	}
	low = fmin(low, .75 * high); /* what hardly varies looks even */
	for (size_t i = first; i < n && used + 4 < size; i++) {
		int level = high > low ? (int)lround(7 * (values[i] - low) / (high - low)) : 0;

		used += (size_t)snprintf(buf + used, size - used, "%s",
					 (has_blocks ? blocks : letters)[level]);
	}
	return buf;
}

static void print_steps(const struct watch *w, struct page *p, bool has_blocks)
{
	char bars[4 * WATCH_TIMES + 8];

	if (w->n_steps_kept == 0) {
		line(p, "", "iterations", "none found yet");
		return;
	}
	line(p, "", "iterations", "%llu; the last took %.3f ms, the median %.3f ms, p95 %.3f ms",
	     (unsigned long long)w->n_steps, w->step_ms[w->n_steps_kept - 1], w->p50_ms, w->p95_ms);
	line(p, BOLD, " ", "%s",
	     spark(w->step_ms, w->n_steps_kept, p->columns > NAME ? p->columns - NAME : 1,
		   has_blocks, bars, sizeof(bars)));
}

static void print_ops(const struct watch *w, const json_t *o, struct page *p, bool has_blocks)
{
	char bars[4 * WATCH_TIMES + 8];

	line(p, "", "ops", "%llu begun, %.0f not over, %.1f a second", (unsigned long long)w->n_ops,
	     number(o, "open_ops"), w->n_rates ? w->rates[w->n_rates - 1] : 0.0);
	if (w->n_rates)
		line(p, "", " ", "%s",
		     spark(w->rates, w->n_rates, p->columns > NAME ? p->columns - NAME : 1,
			   has_blocks, bars, sizeof(bars)));
}

/* How many there are in each state. */
static char *count_workers(const json_t *list, char *buf, size_t size)
{
	char state[32], other[32];
	size_t i, used = (size_t)snprintf(buf, size, "%zu", json_array_size(list));
	const json_t *w;

	json_array_foreach(list, i, w)
	{
		size_t n = 0;

		text(w, "state", state, sizeof(state));
		for (size_t k = 0; k < json_array_size(list); k++) {
			bool is_same = !strcmp(state, text(json_array_get(list, k), "state", other,
							   sizeof(other)));

			if (is_same && k < i)
				break;
			n += is_same;
			if (k + 1 == json_array_size(list) && used < size)
				used += (size_t)snprintf(buf + used, size - used, "%s %zu %s",
							 strchr(buf, ':') ? "," : ":", n, state);
		}
	}
	return buf;
}

struct wait {
	double s;
	const char *sentence;
};

/* nboxd's sentences say "has waited 1.5 s" or "is 1.5 s beyond its end". */
static double waited_s(const char *sentence)
{
	const char *at = strstr(sentence, " waited ");

	if (at)
		return strtod(at + 8, NULL);
	at = strstr(sentence, ", is ");
	return at ? strtod(at + 5, NULL) : 0;
}

static int longest_first(const void *pa, const void *pb)
{
	double a = ((const struct wait *)pa)->s, b = ((const struct wait *)pb)->s;

	return (a < b) - (a > b);
}

static void print_waits(const json_t *list, struct page *p)
{
	struct wait waits[WAITS_MAX];
	size_t n = 0, i;
	const json_t *w;

	json_array_foreach(list, i, w)
	{
		const char *sentence = json_string_value(w);

		if (sentence && n < WAITS_MAX)
			waits[n++] = (struct wait){waited_s(sentence), sentence};
	}
	line(p, "", "waits", n ? "%zu, the longest first" : "nobody waits", json_array_size(list));
	if (n)
		qsort(waits, n, sizeof(*waits), longest_first);
	for (i = 0; i < n; i++)
		line(p, "", "", "  %s", waits[i].sentence);
}

void watch_print(const struct watch *w, const char *json, unsigned columns, unsigned rows,
		 bool has_blocks, FILE *to)
{
	CLEANUP(json_freep) json_t *o = json_loads(json, 0, NULL);
	struct page p = {to, columns, rows > 1 ? rows - 1 : 1};
	char a[600], b[64];

	line(&p, BOLD, "", "nbox: %.0f ranks (%.0f nodes x %.0f), %.0f real; up %.0f s; q quits",
	     number(o, "world_size"), number(o, "nodes"), number(o, "gpus_per_node"),
	     number(o, "real_ranks"), w->uptime_s);
	if (text(o, "out", a, sizeof(a))[0])
		line(&p, "", "results", "%s", a);
	line(&p, "", "model", "%s", text(o, "model", a, sizeof(a)));
	line(&p, "", "", "%s", "");
	print_steps(w, &p, has_blocks);
	print_ops(w, o, &p, has_blocks);
	line(&p, "", "workers", "%s", count_workers(json_object_get(o, "workers"), b, sizeof(b)));
	line(&p, number(o, "warnings") > 0 ? RED : "", "warnings",
	     number(o, "warnings") > 0 ? "%.0f: look at them before you trust the figures" : "%.0f",
	     number(o, "warnings"));
	print_waits(json_object_get(o, "waits"), &p);
}

void watch_print_line(const struct watch *w, const char *json, FILE *to)
{
	CLEANUP(json_freep) json_t *o = json_loads(json, 0, NULL);

	fprintf(to,
		"%.1f s: %llu ops, %.1f a second, %.0f not over; %zu workers; %zu waits; %.0f warnings",
		w->uptime_s, (unsigned long long)w->n_ops,
		w->n_rates ? w->rates[w->n_rates - 1] : 0.0, number(o, "open_ops"),
		json_array_size(json_object_get(o, "workers")),
		json_array_size(json_object_get(o, "waits")), number(o, "warnings"));
	if (w->n_steps_kept)
		fprintf(to, "; %llu iterations, the last took %.3f ms, the median %.3f ms",
			(unsigned long long)w->n_steps, w->step_ms[w->n_steps_kept - 1], w->p50_ms);
	fputc('\n', to);
}
