/* See point.h. */
#include "nbox/sweep/point.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "config/addr-file.h"
#include "engine/record-read.h"
#include "nbox/json/json-file.h"
#include "nbox/report/expect.h"
#include "nbox/run/results.h"
#include "nbox/sweep/live.h"

#define NAME_MAX_BYTES 180
#define COMMAND_MAX (1 << 20)

/* A label with what no folder's name may have, or that is too long for one, ends in a number that
 * tells it from others. */
char *point_dir(const struct sweep *s, size_t point, char *buf)
{
	char label[GRID_LABEL_MAX];
	uint32_t hash = 2166136261u;
	bool is_changed;
	size_t n;

	n = strlen(grid_label(&s->grid, point, label));
	is_changed = n > NAME_MAX_BYTES || label[0] == '.';
	for (size_t i = 0; i < n; i++) {
		hash = (hash ^ (unsigned char)label[i]) * 16777619u; /* FNV-1a */
		if (!isalnum((unsigned char)label[i]) && !strchr("._-+=,:%", label[i])) {
			label[i] = '_';
			is_changed = true;
		}
	}
	if (is_changed)
		snprintf(label + (n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES), 16, "-%08x", hash);
	snprintf(buf, PATH_MAX, "%.*s/points/%s", PATH_MAX - GRID_LABEL_MAX - 16, s->dir, label);
	return buf;
}

int point_options(const struct sweep *s, size_t point, struct config **ret, struct err *err)
{
	CLEANUP(values_deinit) struct values words = {.list = NULL};
	struct config *c = NULL;
	struct option_word w;
	int r = grid_words(&s->grid, point, &words, err);

	r = r == 0 ? recorded_config(s->run, &c, err) : r;
	for (int i = 0; r == 0 && i < (int)words.n;) {
		r = option_take(COMMAND_RETIME, (int)words.n, words.list, &i, &w, err);
		r = r == 0 ? config_take(c, &w, err) : r;
	}
	if (r < 0)
		config_free(c);
	else
		*ret = c;
	return r;
}

int point_config(const struct sweep *s, size_t point, struct config **ret, struct err *err)
{
	struct config *c;
	int r = point_options(s, point, &c, err);

	if (r < 0)
		return r;
	r = recorded_finish(s->run, c, err);
	if (r < 0)
		config_free(c);
	else
		*ret = c;
	return r;
}

/* The command line that makes the point by itself, which its folder keeps as command.txt. */
int point_command(const struct sweep *s, size_t point, struct values *ret, struct err *err)
{
	char dir[PATH_MAX];
	int r;

	point_dir(s, point, dir);
	if (!s->run)
		return live_command(s->run_dir, &s->grid, point, dir, ret, err);
	r = values_add(ret, "retime");
	r = r == 0 ? values_add(ret, s->word) : r;
	for (size_t i = 0; i < s->beyond.n && r == 0; i++)
		r = values_add(ret, s->beyond.list[i]);
	r = r == 0 ? grid_words(&s->grid, point, ret, err) : r;
	r = r == 0 ? values_add(ret, "--out") : r;
	return r == 0 ? values_add(ret, dir) : r;
}

static const char *file_of(const char *dir, const char *name, char *buf)
{
	snprintf(buf, PATH_MAX + 32, "%s/%s", dir, name);
	return buf;
}

static void clear(const char *dir)
{
	static const char *const names[] = {RECORD_ENDS,     ADDR_FILE_NAME, "summary.json",
					    "record.nbox",   "config.yaml",  "command.txt",
					    "versions.txt",  "host.json",    "failed.txt",
					    LIVE_OUTPUT_NAME};
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(file_of(dir, names[i], path));
}

static int retime_point(const struct sweep *s, size_t point, const struct values *command,
			struct err *err)
{
	struct retimed t;
	struct config *c;
	char dir[PATH_MAX];
	int r = point_config(s, point, &c, err);

	if (r < 0)
		return r;
	r = retime(s->run, c, &t, err);
	if (r == 0) {
		r = retimed_write(&t, c, point_dir(s, point, dir), s->keeps_records,
				  (int)command->n, command->list, err);
		retimed_deinit(&t);
	}
	config_free(c);
	return r;
}

int point_play(const struct sweep *s, size_t point, struct err *err)
{
	CLEANUP(values_deinit) struct values command = {.list = NULL};
	char dir[PATH_MAX], path[PATH_MAX + 32];
	int r = point_command(s, point, &command, err);

	clear(point_dir(s, point, dir));
	if (r == 0)
		r = s->run ? retime_point(s, point, &command, err) : live_run(&command, dir, err);
	if (s->extra)
		unlink(file_of(dir, s->extra->name, path));
	if (r == 0 && s->extra)
		r = s->extra->write(s, point, file_of(dir, s->extra->name, path), err);
	if (r < 0) {
		if (!err->text[0])
			err_set(err, -r, "%s", strerror(-r));
		point_fail(s, point, err->text);
	}
	return r;
}

void point_fail(const struct sweep *s, size_t point, const char *why)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];
	FILE *f;

	point_dir(s, point, dir);
	mkdir(dir, 0777);
	unlink(file_of(dir, "summary.json", path));
	f = fopen(file_of(dir, "failed.txt", path), "w");
	if (!f)
		return; /* then it is not complete either */
	fprintf(f, "%s\n", why);
	fclose(f);
}

/* The first @size bytes of a file, plain. Return: there is such a file. */
static bool read_text(const char *path, char *ret, size_t size)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;

	if (file_read(path, COMMAND_MAX, &text, &n, NULL) < 0)
		return false;
	snprintf(ret, size, "%s", text);
	if (strchr(ret, '\n'))
		*strchr(ret, '\n') = '\0';
	plain_text(ret);
	return true;
}

static bool is_older(const struct stat *made, const struct stat *of)
{
	return made->st_mtim.tv_sec != of->st_mtim.tv_sec
		       ? made->st_mtim.tv_sec < of->st_mtim.tv_sec
		       : made->st_mtim.tv_nsec < of->st_mtim.tv_nsec;
}

static bool is_younger(const struct stat *made, const char *run_dir)
{
	char path[PATH_MAX + 32];
	struct stat record;

	return stat(file_of(run_dir, "record.nbox", path), &record) == 0 &&
	       !is_older(made, &record);
}

/* Of "--fabric=my.yaml": the file has changed since. */
static bool names_younger_file(const char *word, const struct stat *made)
{
	const char *value = strrchr(word, '=');
	struct stat file;

	return value && stat(value + 1, &file) == 0 && S_ISREG(file.st_mode) &&
	       is_older(made, &file);
}

/* The folder's command.txt has these words, and is younger than the records of all runs and, where
 * it is re-timed, than the files that they name. */
static bool is_of(const char *dir, const struct values *command, const struct sweep *s)
{
	CLEANUP(freep) char *text = NULL;
	char path[PATH_MAX + 32];
	struct stat made;
	const char *at;
	size_t n;

	if (stat(file_of(dir, "command.txt", path), &made) < 0 ||
	    file_read(path, COMMAND_MAX, &text, &n, NULL) < 0)
		return false;
	at = text;
	for (size_t i = 0; i < command->n; i++) {
		n = strlen(command->list[i]);
		if (strncmp(at, command->list[i], n) != 0 || at[n] != '\n' ||
		    (s->run && names_younger_file(command->list[i], &made)))
			return false;
		at += n + 1;
	}
	for (size_t i = 0; s->run && i < s->run->n_others; i++)
		if (!is_younger(&made, s->run->others[i].dir))
			return false;
	return !*at && is_younger(&made, s->run_dir);
}

static double number_of(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void take_warnings(json_t *list, struct point_result *ret)
{
	json_t *warning;
	size_t i, at = 0;

	ret->n_warnings = (unsigned)json_array_size(list);
	json_array_foreach(list, i, warning)
	{
		const char *text = json_string_value(warning);
		size_t n = text ? strlen(text) : 0;

		if (!n || at + n + 2 > sizeof(ret->warnings))
			continue;
		memcpy(ret->warnings + at, text, n + 1);
		plain_text(ret->warnings + at);
		at += strlen(ret->warnings + at);
		ret->warnings[at++] = '\n';
		ret->warnings[at] = '\0';
	}
}

static void take_summary(json_t *o, struct point_result *ret)
{
	json_t *steps = json_object_get(o, "steps"), *ms = json_object_get(steps, "ms");
	json_t *expected, *code = json_object_get(o, "exit_code");
	bool is_ended = code && json_integer_value(code) != 0 &&
			json_integer_value(code) != EXPECT_EXIT_CODE_UNMET; /* too early */
	size_t i;

	json_array_foreach(json_object_get(o, "expected"), i, expected) ret->is_unmet |=
		!json_is_true(json_object_get(expected, "met"));
	ret->world = (unsigned)json_integer_value(json_object_get(o, "world_size"));
	ret->nodes = (unsigned)json_integer_value(json_object_get(o, "nodes"));
	ret->has_steps = json_is_object(ms);
	ret->p25 = number_of(ms, "p25");
	ret->p50 = number_of(ms, "p50");
	ret->p75 = number_of(ms, "p75");
	ret->p95 = number_of(ms, "p95");
	ret->mean = number_of(ms, "mean");
	ret->exposed = number_of(o, "exposed_ms");
	ret->injected = number_of(o, "injected_ms");
	ret->modelled = number_of(o, "modelled_ms");
	take_warnings(json_object_get(o, "warnings"), ret);
	ret->state = json_is_object(steps) && !is_ended ? POINT_DONE : POINT_NONE;
}

void point_read_dir(const char *dir, struct point_result *ret)
{
	CLEANUP(json_freep) json_t *o = NULL;
	char path[PATH_MAX + 32];

	*ret = (struct point_result){.state = POINT_NONE};
	if (read_text(file_of(dir, "failed.txt", path), ret->why, sizeof(ret->why)))
		ret->state = POINT_FAILED;
	else if (json_file_read(file_of(dir, "summary.json", path), &o, NULL) == 0)
		take_summary(o, ret);
}

int point_read(const struct sweep *s, size_t point, struct point_result *ret)
{
	CLEANUP(values_deinit) struct values command = {.list = NULL};
	char dir[PATH_MAX], path[PATH_MAX + 32];
	int r = point_command(s, point, &command, NULL);

	point_read_dir(point_dir(s, point, dir), ret);
	if (ret->state == POINT_DONE && (r < 0 || !is_of(dir, &command, s)))
		*ret = (struct point_result){.state = POINT_NONE};
	if (s->extra && access(file_of(dir, s->extra->name, path), F_OK) < 0 &&
	    ret->state == POINT_DONE)
		ret->state = POINT_NONE;
	return r == -ENOMEM ? r : 0;
}
