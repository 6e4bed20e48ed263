/* See grid.h. */
#include "nbox/sweep/grid.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

#define FILE_MAX_BYTES (1 << 20)

void grid_deinit(struct grid *g)
{
	for (size_t i = 0; i < g->n_axes; i++)
		values_deinit(&g->axes[i].values);
	for (size_t i = 0; i < g->n_terms; i++)
		values_deinit(&g->terms[i].parts);
	free(g->axes);
	free(g->terms);
}

/* --- axes ------------------------------------------------------------------------------------- */

/* Takes @v over. Return: 0; -EINVAL with the sentence; -ENOMEM. */
static int add_axis(struct grid *g, const char *name, struct values *v, struct err *err)
{
	struct axis *grown = reallocarray(g->axes, g->n_axes + 1, sizeof(*grown));
	struct axis *a;
	size_t same = 1;

	if (!grown)
		return -ENOMEM;
	g->axes = grown;
	for (size_t i = 0; i < g->n_axes; i++) {
		size_t n = strcspn(g->axes[i].name, "#");

		same += strlen(name) == n && strncmp(g->axes[i].name, name, n) == 0;
	}
	a = &g->axes[g->n_axes++];
	snprintf(a->name, sizeof(a->name), same > 1 ? "%.56s#%zu" : "%.56s", name, same);
	a->values = *v;
	*v = (struct values){.list = NULL};
	g->n_points = (g->n_points ? g->n_points : 1) * a->values.n;
	return g->n_points > GRID_POINTS_MAX
		       ? err_set(err, EINVAL, "more than %d points", GRID_POINTS_MAX)
		       : 0;
}

/* Return: a new one; NULL without memory. */
static struct term *add_term(struct grid *g, const char *option)
{
	struct term *grown = reallocarray(g->terms, g->n_terms + 1, sizeof(*grown)), *t;

	if (!grown)
		return NULL;
	g->terms = grown;
	t = &g->terms[g->n_terms++];
	*t = (struct term){.first_axis = g->n_axes};
	snprintf(t->option, sizeof(t->option), "%s", option);
	return t;
}

static int add_part(struct term *t, const char *text, size_t len)
{
	CLEANUP(freep) char *part = strndup(text, len);

	return part ? values_add(&t->parts, part) : -ENOMEM;
}

/* Values of the option have no commas, or this one has none: it is all list. */
static bool is_list(const struct option_word *w)
{
	enum option_kind kind = options[w->id].kind;

	if (kind == KIND_COUNT || kind == KIND_SEED || kind == KIND_TIME || kind == KIND_BYTES ||
	    kind == KIND_BANDWIDTH || kind == KIND_RATIO || kind == KIND_CHOICE)
		return true;
	return (w->id == CONFIG_MODEL || w->id == CONFIG_PRESET) && !strpbrk(w->value, ":=");
}

/* "delay" of "add:op=allreduce,delay={"; else the option's name. */
static void axis_name(const struct option_word *w, const char *brace, char *ret, size_t size)
{
	const char *begin = brace;

	snprintf(ret, size, "%s", options[w->id].name);
	if (brace == w->value || brace[-1] != '=')
		return;
	for (begin--; begin > w->value && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_');)
		begin--;
	if (begin < brace - 1)
		snprintf(ret, size, "%.*s", (int)(brace - 1 - begin), begin);
}

/* A list or a range that lacks its braces. */
static int check_braces(const struct option_word *w, struct err *err)
{
	const char *at = strchr(w->value, ':'), *key = NULL, *next = strchr(w->value, ',');

	if (w->id == CONFIG_INTER && next && strchr(next, 'x') && !strchr(w->value, '{'))
		return err_set(err, EINVAL, "a list of values stands in braces here: {%s}",
			       w->value);
	if ((w->id != CONFIG_MODEL && w->id != CONFIG_WHAT_IF && w->id != CONFIG_LINKS) || !at)
		return 0;
	for (at++;; at++) {
		size_t n = strcspn(at, ",{}"), eq = strcspn(at, "=");
		const char *dots = strstr(at, "..");

		if (at[n] && at[n] != ',')
			return 0; /* braces */
		if (eq >= n && key && isdigit((unsigned char)*at))
			break; /* a parameter without its name */
		key = eq < n ? at : key;
		if (eq < n && dots && dots < at + n && isdigit((unsigned char)at[eq + 1]) &&
		    isdigit((unsigned char)dots[2]))
			break;
		if (!at[n])
			return 0;
		at += n;
	}
	return err_set(
		err, EINVAL,
		"%s: a comma begins the next parameter here; a list or a range of values stands in braces: %.*s{%s}",
		w->value, (int)(strcspn(key, "=") + 1), key, key + strcspn(key, "=") + 1);
}

static int take_list(struct grid *g, struct term *t, const char *name, const char *text, size_t len,
		     struct err *err)
{
	CLEANUP(values_deinit) struct values v = {.list = NULL};
	int r = values_parse(text, len, &v, err);

	if (r == 0)
		r = add_axis(g, name, &v, err);
	t->n_axes += r == 0;
	return r;
}

int grid_take(struct grid *g, const struct option_word *w, struct err *err)
{
	struct term *t = add_term(g, w->name);
	const char *at = w->value;
	char name[64];
	int r = t ? check_braces(w, err) : -ENOMEM;

	if (r == 0 && is_list(w) && !strpbrk(at, "{}")) {
		r = add_part(t, "", 0);
		if (r == 0)
			r = take_list(g, t, options[w->id].name, at, strlen(at), err);
		at += strlen(at);
	}
	while (r == 0 && strchr(at, '{')) {
		const char *open = strchr(at, '{'), *close = open + strcspn(open, "}");

		if (!*close || memchr(open + 1, '{', (size_t)(close - open - 1)))
			return err_set(
				err, EINVAL,
				"%s: a list stands between one '{' and one '}', without others within",
				w->value);
		axis_name(w, open, name, sizeof(name));
		r = add_part(t, at, (size_t)(open - at));
		if (r == 0)
			r = take_list(g, t, name, open + 1, (size_t)(close - open - 1), err);
		at = close + 1;
	}
	if (r == 0)
		r = add_part(t, at, strlen(at));
	return r < 0 && err->text[0] ? err_prefix(err, r, "%s", w->name) : r;
}

/* --- files of points -------------------------------------------------------------------------- */

/* Adds the words of a line, which blanks separate, but not within quotes. Return: 0; -EINVAL with
 * the sentence; -ENOMEM. */
static int split(const char *line, struct values *ret, struct err *err)
{
	CLEANUP(freep) char *word = malloc(strlen(line) + 1);
	int r = word ? 0 : -ENOMEM;

	while (r == 0 && *(line += strspn(line, " \t\r"))) {
		size_t n = 0;
		char quote = 0;

		for (; *line && (quote || !strchr(" \t\r", *line)); line++)
			if (quote ? *line == quote : *line == '"' || *line == '\'')
				quote = quote ? 0 : *line;
			else
				word[n++] = *line;
		word[n] = '\0';
		r = quote ? err_set(err, EINVAL, "a %c is not closed", quote)
			  : values_add(ret, word);
	}
	return r;
}

/* The options of a line as "--name=value". Return: as split(). */
static int line_words(const char *line, struct values *ret, struct err *err)
{
	CLEANUP(values_deinit) struct values words = {.list = NULL};
	struct option_word w;
	int r = split(line, &words, err);

	for (int i = 0; r == 0 && i < (int)words.n;) {
		CLEANUP(freep) char *word = NULL;

		r = option_take(COMMAND_SWEEP, (int)words.n, words.list, &i, &w, err);
		if (r == OPTION_NONE || (r == 0 && (w.id >= CONFIG_OPTIONS || w.id == CONFIG_OUT)))
			return err_set(err, EINVAL,
				       "'%s': a line has options of a run, such as --nodes 8",
				       r == 0 ? w.name : words.list[i]);
		if (r == 0)
			r = asprintf(&word, "%s=%s", w.name, w.value) < 0 ? -ENOMEM
									  : values_add(ret, word);
	}
	return r;
}

int grid_take_file(struct grid *g, const char *path, struct err *err)
{
	CLEANUP(values_deinit) struct values lines = {.list = NULL};
	CLEANUP(freep) char *text = NULL;
	struct term *t = add_term(g, "");
	unsigned number = 0;
	size_t n;
	int r = t ? file_read(path, FILE_MAX_BYTES, &text, &n, err) : -ENOMEM;

	for (char *at = text, *line; r == 0 && (line = strsep(&at, "\n"));) {
		CLEANUP(values_deinit) struct values words = {.list = NULL};

		number++;
		line += strspn(line, " \t\r");
		if (*line == '#' || !*line)
			continue;
		r = line_words(line, &words, err);
		if (r < 0 && err->text[0])
			return err_prefix(err, r, "%s:%u", path, number);
		if (r == 0)
			r = values_add(&lines, line);
	}
	if (r == 0 && lines.n == 0)
		return err_set(err, EINVAL, "%s: there is no line with options", path);
	if (r == 0)
		r = add_axis(g, "list", &lines, err);
	if (r == 0)
		t->n_axes = 1;
	return r;
}

/* --- points ----------------------------------------------------------------------------------- */

const char *grid_value(const struct grid *g, size_t point, size_t axis)
{
	for (size_t i = g->n_axes - 1; i > axis; i--)
		point /= g->axes[i].values.n;
	return g->axes[axis].values.list[point % g->axes[axis].values.n];
}

char *grid_label(const struct grid *g, size_t point, char *buf)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < g->n_axes && used < GRID_LABEL_MAX; i++) {
		bool is_line = strcmp(g->axes[i].name, "list") == 0;

		if (g->axes[i].values.n > 1)
			used += (size_t)snprintf(buf + used, GRID_LABEL_MAX - used, "%s%s%s%s",
						 used ? "," : "", is_line ? "" : g->axes[i].name,
						 is_line ? "" : "=", grid_value(g, point, i));
	}
	if (!used)
		snprintf(buf, GRID_LABEL_MAX, "all");
	return buf;
}

static int term_word(const struct grid *g, const struct term *t, size_t point, struct values *ret)
{
	CLEANUP(freep) char *word = NULL;
	size_t size;
	FILE *f = open_memstream(&word, &size);

	if (!f)
		return -ENOMEM;
	fprintf(f, "%s=", t->option);
	for (size_t i = 0; i < t->parts.n; i++) {
		fputs(t->parts.list[i], f);
		if (i < t->n_axes)
			fputs(grid_value(g, point, t->first_axis + i), f);
	}
	return fclose(f) == 0 ? values_add(ret, word) : -ENOMEM;
}

int grid_words(const struct grid *g, size_t point, struct values *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < g->n_terms; i++) {
		const struct term *t = &g->terms[i];

		r = t->option[0] ? term_word(g, t, point, ret)
				 : line_words(grid_value(g, point, t->first_axis), ret, err);
	}
	return r;
}
