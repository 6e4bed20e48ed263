/* The cluster file: libyaml's events give structure and places, the option table
 * says which keys there are. No aliases, no tags, no second document: a cluster
 * file is what it says. Numbers stay texts here; convert.c converts them. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "config/config.h"

#define FILE_MAX_BYTES (1u << 20)
#define KEY_MAX 128

struct reader {
	struct config *c;
	const char *name; /* of the file */
	const char *text; /* borrowed, @n bytes */
	size_t n;
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; empty when type is YAML_NO_EVENT */
	struct err *err;
};

static int refuse_at(struct reader *r, yaml_mark_t mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse_at(struct reader *r, yaml_mark_t mark, const char *fmt, ...)
{
	char sentence[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(r->err, EINVAL, "%s:%zu:%zu: %s", r->name, mark.line + 1, mark.column + 1,
		       sentence);
}

/* Is the line, counted from 0, indented with a tab? libyaml says of one only that it cannot start a
 * token. */
static bool has_tab(const struct reader *r, size_t line)
{
	const char *p = r->text, *end = r->text + r->n;

	for (; p && line > 0; line--) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	while (p && p < end && *p == ' ')
		p++;
	return p && p < end && *p == '\t';
}

/* Has a mapping or a sequence a tag or an anchor? */
static bool is_marked(const yaml_event_t *e)
{
	if (e->type == YAML_MAPPING_START_EVENT)
		return e->data.mapping_start.tag || e->data.mapping_start.anchor;
	return e->type == YAML_SEQUENCE_START_EVENT &&
	       (e->data.sequence_start.tag || e->data.sequence_start.anchor);
}

static int next(struct reader *r)
{
	yaml_event_delete(&r->event);
	memset(&r->event, 0, sizeof(r->event));
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		yaml_mark_t mark = r->parser.problem_mark;

		if (r->parser.error == YAML_MEMORY_ERROR)
			return err_set(r->err, ENOMEM, "%s: out of memory", r->name);
		if (r->parser.error == YAML_READER_ERROR)
			return err_set(r->err, EINVAL, "%s: byte %zu: %s", r->name,
				       r->parser.problem_offset,
				       r->parser.problem ? r->parser.problem : "not UTF-8");
		if (has_tab(r, mark.line))
			return refuse_at(r, mark,
					 "line %zu is indented with a tab; YAML wants spaces",
					 mark.line + 1);
		return refuse_at(
			r, mark, "no YAML: %s%s%s%s", r->parser.context ? r->parser.context : "",
			r->parser.context ? ", " : "", r->parser.problem ? r->parser.problem : "?",
			r->parser.problem && strstr(r->parser.problem, "mapping values")
				? " (a text that has a colon and a blank needs \"...\" around it)"
				: "");
	}
	if (r->event.type == YAML_ALIAS_EVENT)
		return refuse_at(r, r->event.start_mark, "aliases (*name) are not taken here");
	if (is_marked(&r->event))
		return refuse_at(r, r->event.start_mark,
				 "tags (!) and anchors (&) are not taken here");
	return 0;
}

/* The text of a scalar: no NUL or control bytes, not null, not tagged. */
static int scalar_text(struct reader *r, const char *what, const char **ret)
{
	const char *text = (const char *)r->event.data.scalar.value;
	size_t n = r->event.data.scalar.length;
	bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (r->event.data.scalar.tag || r->event.data.scalar.anchor)
		return refuse_at(r, r->event.start_mark,
				 "%s: tags (!) and anchors (&) are not taken here", what);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return refuse_at(r, r->event.start_mark,
					 "%s: a control character in the text", what);
	if (plain && (n == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
		return refuse_at(r, r->event.start_mark, "%s: no value", what);
	*ret = text;
	return 0;
}

/* Names the next level under @prefix, for suggestions. */
static size_t names_under(const char *prefix, char names[][KEY_MAX], const char **list)
{
	size_t len = strlen(prefix), n = 0;

	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *rest = options[i].key;
		size_t k;

		if (strncmp(rest, prefix, len) != 0)
			continue;
		rest += len;
		snprintf(names[n], KEY_MAX, "%.*s", (int)strcspn(rest, "."), rest);
		for (k = 0; k < n; k++)
			if (strcmp(names[k], names[n]) == 0)
				break;
		if (k == n) {
			list[n] = names[n];
			n++;
		}
	}
	return n;
}

static int unknown_key(struct reader *r, const char *prefix, const char *key, yaml_mark_t mark)
{
	char names[CONFIG_OPTIONS][KEY_MAX], all[400] = "";
	const char *list[CONFIG_OPTIONS], *near;
	size_t n = names_under(prefix, names, list), used = 0;

	near = suggest(key, list, n);
	if (near)
		return refuse_at(r, mark, "unknown key '%.64s%.64s'; did you mean '%s'?", prefix,
				 key, near);
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *dot = strrchr(options[i].key, '.');

		if (strcmp(dot ? dot + 1 : options[i].key, key) == 0 ||
		    strcmp(options[i].name, key) == 0)
			return refuse_at(r, mark, "unknown key '%.64s%.64s'; did you mean '%s'?",
					 prefix, key, options[i].key);
	}
	for (size_t i = 0; i < n && used < sizeof(all) - KEY_MAX; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 list[i]);
	return refuse_at(r, mark, "unknown key '%.64s%.64s'; there are: %s", prefix, key, all);
}

/* Adds a value unless flag or variable were first; doubles were found before. */
static int add(struct reader *r, enum option_id id, const char *text)
{
	struct config_value *v = &r->c->values[id];

	if (v->source > SOURCE_FILE)
		return 0;
	if (v->source < SOURCE_FILE)
		value_clear(v);
	if (value_add(v, SOURCE_FILE, text, (unsigned)r->event.start_mark.line + 1,
		      (unsigned)r->event.start_mark.column + 1) < 0)
		return err_set(r->err, ENOMEM, "%s: out of memory", r->name);
	return 0;
}

static int read_list(struct reader *r, enum option_id id)
{
	const char *text;
	int e;

	if (options[id].kind == KIND_MAP)
		return refuse_at(r, r->event.start_mark,
				 "%s: a mapping is expected, such as "
				 "{allreduce: tree}",
				 options[id].key);
	for (;;) {
		if ((e = next(r)) < 0)
			return e;
		if (r->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (r->event.type != YAML_SCALAR_EVENT)
			return refuse_at(
				r, r->event.start_mark,
				"%s: texts are expected in this list; put \"...\" around one "
				"that has a colon and a blank",
				options[id].key);
		if ((e = scalar_text(r, options[id].key, &text)) < 0 || (e = add(r, id, text)) < 0)
			return e;
	}
}

static int read_map(struct reader *r, enum option_id id)
{
	CLEANUP(freep) char *pair = NULL;
	const char *text;
	char key[KEY_MAX];
	int e;

	for (;;) {
		if ((e = next(r)) < 0)
			return e;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (r->event.type != YAML_SCALAR_EVENT)
			return refuse_at(r, r->event.start_mark, "%s: a name is expected here",
					 options[id].key);
		if ((e = scalar_text(r, options[id].key, &text)) < 0)
			return e;
		if (strlen(text) >= sizeof(key) || strchr(text, '='))
			return refuse_at(r, r->event.start_mark, "%s: unknown name '%.32s'",
					 options[id].key, text);
		snprintf(key, sizeof(key), "%s", text);
		if ((e = next(r)) < 0)
			return e;
		if (r->event.type != YAML_SCALAR_EVENT)
			return refuse_at(r, r->event.start_mark, "%s.%s: one text is expected here",
					 options[id].key, key);
		if ((e = scalar_text(r, key, &text)) < 0)
			return e;
		free(steal_ptr(pair));
		if (asprintf(&pair, "%s=%s", key, text) < 0) {
			pair = NULL;
			return err_set(r->err, ENOMEM, "%s: out of memory", r->name);
		}
		if ((e = add(r, id, pair)) < 0)
			return e;
	}
}

static int read_value(struct reader *r, enum option_id id)
{
	const struct option *o = &options[id];
	const char *text;
	int e;

	if (r->event.type == YAML_SEQUENCE_START_EVENT && option_is_list(id))
		return read_list(r, id);
	if (r->event.type == YAML_MAPPING_START_EVENT && o->kind == KIND_MAP)
		return read_map(r, id);
	if (r->event.type != YAML_SCALAR_EVENT)
		return refuse_at(r, r->event.start_mark, "%s: %s", o->key,
				 o->kind == KIND_RANKS
					 ? "one text is expected, such as \"0-7\" or \"0,8\""
					 : "one value is expected here");
	if (o->kind == KIND_MAP)
		return refuse_at(r, r->event.start_mark, "%s: a mapping is expected, such as {%s}",
				 o->key,
				 id == CONFIG_DATA_FOR ? "allgather: identity" : "allreduce: tree");
	if ((e = scalar_text(r, o->key, &text)) < 0)
		return e;
	if (o->kind == KIND_LIST && id != CONFIG_ADDR) /* mostly there is one address */
		return refuse_at(r, r->event.start_mark, "%s: a list is expected: [\"%.100s\"]",
				 o->key, text);
	return add(r, id, text);
}

static int read_level(struct reader *r, const char *prefix, bool seen[CONFIG_OPTIONS]);

/* The current event is the first of the value of @path. */
static int read_key(struct reader *r, const char *prefix, const char *key, yaml_mark_t mark,
		    bool seen[CONFIG_OPTIONS])
{
	char path[2 * KEY_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s%s", prefix, key);
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		if (strcmp(options[i].key, path) != 0)
			continue;
		if (seen[i])
			return refuse_at(r, mark, "key '%s' is here a second time", path);
		seen[i] = true;
		return read_value(r, (enum option_id)i);
	}
	len = strlen(path);
	snprintf(path + len, sizeof(path) - len, ".");
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		if (strncmp(options[i].key, path, len + 1) != 0)
			continue;
		if (r->event.type != YAML_MAPPING_START_EVENT)
			return refuse_at(r, r->event.start_mark, "%s%s: keys are expected under it",
					 prefix, key);
		return read_level(r, path, seen);
	}
	return unknown_key(r, prefix, key, mark);
}

/* The current event opened the mapping; ends at the one that closes it. Recursion
 * is as deep as the keys of the table. */
static int read_level(struct reader *r, const char *prefix, bool seen[CONFIG_OPTIONS])
{
	const char *text;
	char key[KEY_MAX];
	yaml_mark_t mark;
	bool any[CONFIG_OPTIONS] = {false}; /* groups of this level, by their first option */
	int e;

	for (;;) {
		if ((e = next(r)) < 0)
			return e;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		mark = r->event.start_mark;
		if (r->event.type != YAML_SCALAR_EVENT)
			return refuse_at(r, mark, "a key is expected here");
		if ((e = scalar_text(r, "key", &text)) < 0)
			return e;
		snprintf(key, sizeof(key), "%s", text);
		if (strlen(text) >= sizeof(key) || strchr(text, '.') || !text[0])
			return unknown_key(r, prefix, key, mark);
		for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
			size_t len = strlen(prefix), n = strlen(key);

			if (strncmp(options[i].key, prefix, len) != 0 ||
			    strncmp(options[i].key + len, key, n) != 0 ||
			    options[i].key[len + n] != '.')
				continue;
			if (any[i])
				return refuse_at(r, mark, "key '%s%s' is here a second time",
						 prefix, key);
			any[i] = true;
			break;
		}
		if ((e = next(r)) < 0 || (e = read_key(r, prefix, key, mark, seen)) < 0)
			return e;
	}
}

static int read_document(struct reader *r)
{
	bool seen[CONFIG_OPTIONS] = {false};
	int e;

	if ((e = next(r)) < 0) /* stream start */
		return e;
	if ((e = next(r)) < 0)
		return e;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return err_set(r->err, EINVAL, "%s:1:1: the file is empty", r->name);
	if ((e = next(r)) < 0)
		return e;
	if (r->event.type != YAML_MAPPING_START_EVENT)
		return refuse_at(r, r->event.start_mark,
				 "keys are expected here, such as cluster:, model:, exchange:");
	if ((e = read_level(r, "", seen)) < 0 || (e = next(r)) < 0 || (e = next(r)) < 0)
		return e;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return refuse_at(r, r->event.start_mark,
				 "a second document; one file, one cluster");
	return 0;
}

int config_parse(struct config *c, const char *name, const char *text, size_t n, struct err *err)
{
	struct reader r = {.c = c, .name = name, .text = text, .n = n, .err = err};
	int e;

	if (c->file)
		return err_set(err, EINVAL, "%s: a second cluster file; %s was read before", name,
			       c->file);
	if (n > FILE_MAX_BYTES)
		return err_set(err, EINVAL, "%s: a cluster file has at most %u bytes", name,
			       FILE_MAX_BYTES);
	c->file = strdup(name);
	if (!c->file || !yaml_parser_initialize(&r.parser))
		return err_set(err, ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	e = read_document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return e;
}

int config_file(struct config *c, const char *path, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return err_set(err, errno, "%s: cannot read the cluster file: %s", path,
			       strerror(errno));
	if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
		fclose(f);
		return err_set(err, EISDIR, "%s: is a directory, not a cluster file", path);
	}
	text = malloc(FILE_MAX_BYTES + 1);
	n = text ? fread(text, 1, FILE_MAX_BYTES + 1, f) : 0;
	fclose(f);
	if (!text)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	return config_parse(c, path, text, n, err);
}
