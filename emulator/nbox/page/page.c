/* See page.h. */
#include "nbox/page/page.h"

#include <errno.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "config/config.h"
#include "nbox/json/json-file.h"
#include "nbox/page/plan-page.h"
#include "nbox/page/points.h"
#include "nbox/page/run-page.h"
#include "nbox/report/live-run.h"
#include "nbox/report/recall.h"
#include "nbox/report/runs.h"
#include "nbox/report/summary.h"

#define COMMAND_MAX (1 << 20)
#define PLAIN_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=,.:/+%@"

/* --- one run --------------------------------------------------------------------------------- */

/* With the run's fabric, if it has one. NULL: not there, or not to be read. */
static struct config *read_config(const char *dir)
{
	struct config *c = NULL;
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/config.yaml", dir);
	if (!dir[0] || config_new(&c) < 0)
		return NULL;
	if (config_file(c, path, NULL) < 0 || config_finish(c, NULL) < 0)
		c = config_free(c);
	return c;
}

static void config_freep(struct config **c)
{
	*c = config_free(*c);
}

static int write_run(const char *word, enum page_format format, FILE *to, struct err *err)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {0};
	CLEANUP(view_deinit) struct view view = {0};
	CLEANUP(config_freep) struct config *config = NULL;
	CLEANUP(loads_deinit) struct loads loads = {0};
	struct report rep;
	char path[PATH_MAX + 32];
	int r = run_load(word, &run, err);

	if (r == 0)
		r = run_report(&run, &rep);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/summary.json", run.dir);
	if (run.dir[0])
		report_recall(&rep, path);
	r = view_make(&run.rec, rep.rank, &view);
	if (r < 0)
		return r;
	config = read_config(run.dir);
	r = config && format != PAGE_SVG ? loads_find(config, &view, &loads) : 0;
	if (r < 0)
		return r;

	const struct page_run p = {&run, &rep, &view, config ? config->fabric : NULL, &loads};
	struct doc d = {.to = to, .form = format == PAGE_MD ? DOC_MD : DOC_HTML};

	if (format == PAGE_SVG && view.n_lanes == 0)
		return err_set(err, ENODATA, "%s: nothing to draw: no op was recorded", word);
	if (format != PAGE_SVG)
		return run_page_write(&p, &d);
	run_page_draw(&p, SVG_ALONE, to);
	return 0;
}

/* --- several --------------------------------------------------------------------------------- */

struct sides {
	struct compare_side *list; /* owned */
	size_t n;                  /* that were loaded */
};

static void sides_deinit(struct sides *s)
{
	for (size_t i = 0; i < s->n; i++)
		compare_deinit(&s->list[i]);
	free(s->list);
}

static int write_summaries(const struct sides *s, struct doc *d)
{
	json_t *all = json_array();
	CLEANUP(freep) char *text = NULL;

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(all, report_json(&s->list[i].rep, s->list[i].info.exit_code));
	text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	if (!text)
		return -ENOMEM;
	doc_json(d, "summary", text);
	return 0;
}

static void write_warnings(const struct sides *s, struct doc *d)
{
	bool has_heading = false;

	for (size_t i = 0; i < s->n; i++)
		for (uint32_t k = 0; k < s->list[i].rep.n_warnings; k++) {
			char text[800];
			const char *list[] = {text};

			if (!has_heading)
				doc_heading(d, "Look at this before you trust the figures");
			has_heading = true;
			snprintf(text, sizeof(text), "%s: %s", s->list[i].dir,
				 s->list[i].rep.warnings[k]);
			doc_warnings(d, list, 1);
		}
}

static int write_runs(const char *const *words, size_t n, enum page_format format, FILE *to,
		      struct err *err)
{
	CLEANUP(sides_deinit) struct sides s = {.list = calloc(n, sizeof(*s.list))};
	CLEANUP(points_deinit) struct points points = {0};
	struct doc d = {.to = to, .form = format == PAGE_MD ? DOC_MD : DOC_HTML};
	char title[160];
	int r = s.list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = compare_load(words[i], &s.list[i], err);
		s.n += r == 0;
	}
	if (r == 0)
		r = points_make(s.list, s.n, &points);
	if (r < 0)
		return r;
	snprintf(title, sizeof(title), "%zu runs%s%s", n, points.axis[0] ? " by " : "",
		 points.axis);

	const struct page_sweep sweep = {.title = title,
					 .axis = points.axis[0] ? points.axis : NULL,
					 .band = "the middle half of the iterations",
					 .points = points.list,
					 .n = n};

	if (format == PAGE_SVG)
		return sweep_page_draw(&sweep, SVG_ALONE, to);
	doc_begin(&d, title);
	for (size_t i = 0; i < s.n; i++) /* a line for each that differs from the one before */
		if (s.list[i].info.command[0] &&
		    (i == 0 || strcmp(s.list[i].info.command, s.list[i - 1].info.command) != 0))
			doc_code(&d, s.list[i].info.command);
	r = sweep_page_write(&sweep, &d);
	write_warnings(&s, &d);
	if (r == 0)
		r = write_summaries(&s, &d);
	doc_end(&d);
	return r;
}

/* --- a plan ---------------------------------------------------------------------------------- */

/* "nbox plan gpt --nodes 2,8 --goal 'tokens/s >= 2M'", from command.txt. NULL: it is not there. */
static char *read_command(const char *dir)
{
	CLEANUP(freep) char *text = NULL;
	char path[PATH_MAX + 32], *ret = NULL;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/command.txt", dir);
	if (file_read(path, COMMAND_MAX, &text, &n, NULL) < 0)
		return NULL;
	f = open_memstream(&ret, &n);
	if (!f)
		return NULL;
	fputs("nbox", f);
	for (char *at = text, *word; (word = strsep(&at, "\n")) && *word;) {
		fputc(' ', f);
		plain_text(word);
		if (strspn(word, PLAIN_LETTERS) == strlen(word))
			fputs(word, f);
		else
			plain_shell(word, f);
	}
	if (fclose(f) == 0)
		return ret;
	free(ret);
	return NULL;
}

/* Return: 0; 1: the word is no plan's folder; negative errno with the sentence. */
static int write_plan(const char *word, enum page_format format, FILE *to, struct err *err)
{
	CLEANUP(json_freep) json_t *plan = NULL;
	CLEANUP(freep) char *command = NULL;
	struct doc d = {.to = to, .form = format == PAGE_MD ? DOC_MD : DOC_HTML};
	char path[PATH_MAX + 32], below[PATH_MAX];
	bool is_plan;

	snprintf(path, sizeof(path), "%s/record.nbox", runs_find(word, below));
	if (access(path, F_OK) == 0)
		return 1;
	snprintf(path, sizeof(path), "%s/plan.json", word);
	snprintf(below, sizeof(below), LIVE_RUN_TOP "/%s", word);
	if (access(path, F_OK) < 0) {
		word = below;
		snprintf(path, sizeof(path), "%s/plan.json", word);
	}
	if (access(path, F_OK) < 0)
		return 1;
	if (json_file_read(path, &plan, err) < 0)
		return -EINVAL;
	if (format == PAGE_SVG)
		return plan_page_draw(plan, SVG_ALONE, to, err);
	command = read_command(word);
	is_plan =
		command && strncmp(command, "nbox plan ", 10) == 0; /* else a sweep came after it */
	return plan_page_write(plan, is_plan ? command : "", &d, err);
}

/* --- PNG ------------------------------------------------------------------------------------- */

/* From the picture in @svg, which is at its end, to @to. */
static int convert(FILE *svg, FILE *to, struct err *err)
{
	static const char *const words[] = {"rsvg-convert", "--zoom=2", "--format=png", NULL};
	posix_spawn_file_actions_t files;
	int r, status;
	pid_t pid;

	if (fflush(svg) == EOF || fflush(to) == EOF || lseek(fileno(svg), 0, SEEK_SET) < 0)
		return -errno;
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	posix_spawn_file_actions_adddup2(&files, fileno(svg), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fileno(to), STDOUT_FILENO);
	r = posix_spawnp(&pid, words[0], &files, NULL, (char *const *)(uintptr_t)words, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return err_set(
			err, r,
			"a PNG needs the program rsvg-convert: %s; install it (Debian, Ubuntu: librsvg2-bin), or take --format svg",
			strerror(r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status == 0 ? 0 : err_set(err, EIO, "rsvg-convert failed; take --format svg");
}

static int write_to(const char *const *words, size_t n, enum page_format format, FILE *to,
		    struct err *err)
{
	int r = n == 1 ? write_plan(words[0], format, to, err) : 1;

	if (r <= 0)
		return r;
	return n == 1 ? write_run(words[0], format, to, err)
		      : write_runs(words, n, format, to, err);
}

static int write_png(const char *const *words, size_t n, FILE *to, struct err *err)
{
	FILE *svg = tmpfile();
	int r = svg ? write_to(words, n, PAGE_SVG, svg, err) : -errno;

	if (r == 0)
		r = convert(svg, to, err);
	if (svg)
		fclose(svg);
	return r;
}

int page_write(const char *const *words, size_t n, enum page_format format, const char *path,
	       struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err), closed;

	if (r < 0)
		return r;
	r = format == PAGE_PNG ? write_png(words, n, to, err) : write_to(words, n, format, to, err);
	closed = file_finish(to, path, err);
	return r < 0 ? r : closed;
}
