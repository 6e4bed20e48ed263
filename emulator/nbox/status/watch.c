/* See watch.h. The iterations are found in the record, which grows while the run goes on: anew each
 * time, and more rarely the longer that takes. */
#include "nbox/status/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/plain.h"
#include "nbox/page/view.h"
#include "nbox/status/screen.h"
#include "nbox/status/watch-text.h"

#define INTERVAL_MS 1000
#define RARELY 20 /* times as long as it took to read the record */

struct looked {
	const char *dir;
	uint64_t next_ns; /* when the record is read again */
};

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static void take_steps(struct watch *w, const struct view *v)
{
	uint64_t n = v->n_timed - v->n_warm_up,
		 first = v->n_timed > WATCH_TIMES ? v->n_timed - WATCH_TIMES : 0;
	CLEANUP(freep) double *sorted = calloc(n + 1, sizeof(*sorted));

	if (n == 0 || !sorted)
		return;
	w->n_steps = v->steps.n;
	w->n_steps_kept = v->n_timed - first;
	memcpy(w->step_ms, v->step_ms + first, w->n_steps_kept * sizeof(w->step_ms[0]));
	memcpy(sorted, v->step_ms + v->n_warm_up, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	w->p50_ms = sorted[n / 2];
	w->p95_ms = sorted[(uint64_t)(.95 * (double)n)];
}

/* A record that cannot be read, or not yet, leaves what was. */
static void look_at_record(struct looked *l, struct watch *w)
{
	CLEANUP(record_deinit) struct record rec = {0};
	CLEANUP(view_deinit) struct view v = {0};
	uint64_t begin_ns = clock_now_ns();
	uint32_t rank = UINT32_MAX;
	char path[PATH_MAX + 16];

	if (!l->dir[0] || begin_ns < l->next_ns)
		return;
	snprintf(path, sizeof(path), "%s/record.nbox", l->dir);
	if (record_load(path, &rec, NULL) == 0) {
		for (uint64_t i = 0; i < rec.n_ops; i++)
			rank = rec.ops[i].world_rank < rank ? rec.ops[i].world_rank : rank;
		if (view_make_steps(&rec, rank, &v) == 0)
			take_steps(w, &v);
	}
	l->next_ns = clock_now_ns() + RARELY * (clock_now_ns() - begin_ns);
}

/* As the variables of the locale say, for a program that has none. */
static bool has_blocks(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *v = getenv(names[i]);

		if (v && v[0])
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

/* Return: 0; -EIO the terminal has gone. */
static int show(const struct watch *w, const char *json)
{
	CLEANUP(freep) char *text = NULL;
	unsigned columns, rows;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return -ENOMEM;
	screen_size(&columns, &rows);
	watch_print(w, json, columns, rows, has_blocks(), to);
	fclose(to);
	return screen_show(text);
}

/* Return: 0 the user has had enough; -EPIPE the run has ended; another negative errno. */
static int watch_screen(struct status_client *c, struct looked *l, struct watch *w)
{
	int r = screen_open();

	c->stop = &screen_signal;
	while (r == 0) {
		enum screen_event event = SCREEN_AGAIN;

		r = watch_take(w, c->json, &c->err);
		look_at_record(l, w);
		while (r == 0 && event == SCREEN_AGAIN) {
			r = show(w, c->json);
			event = r == 0 ? screen_wait(INTERVAL_MS) : SCREEN_QUIT;
		}
		if (r < 0 || event == SCREEN_QUIT)
			break;
		r = status_ask(c);
	}
	screen_close();
	return r == -EINTR ? 0 : r;
}

static int watch_lines(struct status_client *c, struct looked *l, struct watch *w,
		       enum watch_form form)
{
	int r = 0;

	while (r == 0) {
		r = watch_take(w, c->json, &c->err);
		look_at_record(l, w);
		c->json[strcspn(c->json, "\n")] = 0; /* puts() has one of its own */
		if (r == 0 && form == WATCH_JSON)
			puts(plain_text(c->json));
		else if (r == 0)
			watch_print_line(w, c->json, stdout);
		if (r == 0 && fflush(stdout) == EOF)
			return -EIO;
		poll(NULL, 0, INTERVAL_MS);
		r = r == 0 ? status_ask(c) : r;
	}
	return r;
}

int watch_run(struct status_client *c, const char *dir, enum watch_form form)
{
	struct looked l = {.dir = dir};
	struct watch w = {.n_steps = 0};
	bool is_screen = form == WATCH_TEXT && isatty(STDOUT_FILENO);
	char place[PATH_MAX];
	int r = is_screen ? watch_screen(c, &l, &w) : watch_lines(c, &l, &w, form);

	if (is_screen && screen_signal && screen_signal != SIGINT)
		return 128 + screen_signal;
	if (r == -EPIPE && form == WATCH_TEXT) {
		l.next_ns = 0;
		look_at_record(&l, &w);
		snprintf(place, sizeof(place), "%s", dir);
		printf("the run is over: %llu ops, %llu iterations of %.3f ms (median)%s%s\n",
		       (unsigned long long)w.n_ops, (unsigned long long)w.n_steps, w.p50_ms,
		       dir[0] ? "; nbox report " : "", plain_text(place));
	}
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "nbox status: %s\n", c->err.text[0] ? c->err.text : strerror(-r));
	return r < 0 && r != -EPIPE;
}
