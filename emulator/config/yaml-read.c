/* The cluster file: libyaml's events give structure and places, the option table
 * says which keys there are. No aliases, no tags, no second document: a cluster
 * file is what it says. Numbers stay texts here; convert.c converts them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "config/config.h"
#include "config/kept-file.h"
#include "config/yaml-file.h"

#define KEY_MAX 128

struct reader {
	struct config *c;
	struct yaml yaml;
};

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
		return yaml_refuse(&r->yaml, mark, "unknown key '%.64s%.64s'; did you mean '%s'?",
				   prefix, key, near);
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *dot = strrchr(options[i].key, '.');

		if (strcmp(dot ? dot + 1 : options[i].key, key) == 0 ||
		    strcmp(options[i].name, key) == 0)
			return yaml_refuse(&r->yaml, mark,
					   "unknown key '%.64s%.64s'; did you mean '%s'?", prefix,
					   key, options[i].key);
	}
	for (size_t i = 0; i < n && used < sizeof(all) - KEY_MAX; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 list[i]);
	return yaml_refuse(&r->yaml, mark, "unknown key '%.64s%.64s'; there are: %s", prefix, key,
			   all);
}

/* Adds a value unless flag or variable were first; doubles were found before. */
static int add(struct reader *r, enum option_id id, const char *text)
{
	struct config_value *v = &r->c->values[id];

	if (v->source > SOURCE_FILE)
		return 0;
	if (v->source < SOURCE_FILE)
		value_clear(v);
	if (value_add(v, SOURCE_FILE, text, (unsigned)r->yaml.event.start_mark.line + 1,
		      (unsigned)r->yaml.event.start_mark.column + 1) < 0)
		return err_set(r->yaml.err, ENOMEM, "%s: out of memory", r->yaml.name);
	return 0;
}

static int read_list(struct reader *r, enum option_id id)
{
	const char *text;
	int e;

	if (options[id].kind == KIND_MAP)
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
				   "%s: a mapping is expected, such as "
				   "{allreduce: tree}",
				   options[id].key);
	for (;;) {
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (r->yaml.event.type != YAML_SCALAR_EVENT)
			return yaml_refuse(
				&r->yaml, r->yaml.event.start_mark,
				"%s: texts are expected in this list; put \"...\" around one "
				"that has a colon and a blank",
				options[id].key);
		if ((e = yaml_scalar(&r->yaml, options[id].key, &text)) < 0 ||
		    (e = add(r, id, text)) < 0)
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
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (r->yaml.event.type != YAML_SCALAR_EVENT)
			return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
					   "%s: a name is expected here", options[id].key);
		if ((e = yaml_scalar(&r->yaml, options[id].key, &text)) < 0)
			return e;
		if (strlen(text) >= sizeof(key) || strchr(text, '='))
			return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
					   "%s: unknown name '%.32s'", options[id].key, text);
		snprintf(key, sizeof(key), "%s", text);
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type != YAML_SCALAR_EVENT)
			return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
					   "%s.%s: one text is expected here", options[id].key,
					   key);
		if ((e = yaml_scalar(&r->yaml, key, &text)) < 0)
			return e;
		free(steal_ptr(pair));
		if (asprintf(&pair, "%s=%s", key, text) < 0) {
			pair = NULL;
			return err_set(r->yaml.err, ENOMEM, "%s: out of memory", r->yaml.name);
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

	if (r->yaml.event.type == YAML_SEQUENCE_START_EVENT && option_is_list(id))
		return read_list(r, id);
	if (r->yaml.event.type == YAML_MAPPING_START_EVENT && o->kind == KIND_MAP)
		return read_map(r, id);
	if (r->yaml.event.type != YAML_SCALAR_EVENT)
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark, "%s: %s", o->key,
				   o->kind == KIND_RANKS
					   ? "one text is expected, such as \"0-7\" or \"0,8\""
					   : "one value is expected here");
	if (o->kind == KIND_MAP)
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
				   "%s: a mapping is expected, such as {%s}", o->key,
				   id == CONFIG_DATA_FOR ? "allgather: identity"
							 : "allreduce: tree");
	if ((e = yaml_scalar(&r->yaml, o->key, &text)) < 0)
		return e;
	if (o->kind == KIND_LIST && id != CONFIG_ADDR) /* mostly there is one address */
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
				   "%s: a list is expected: [\"%.100s\"]", o->key, text);
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
			return yaml_refuse(&r->yaml, mark, "key '%s' is here a second time", path);
		seen[i] = true;
		return read_value(r, (enum option_id)i);
	}
	len = strlen(path);
	snprintf(path + len, sizeof(path) - len, ".");
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		if (strncmp(options[i].key, path, len + 1) != 0)
			continue;
		if (r->yaml.event.type != YAML_MAPPING_START_EVENT)
			return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
					   "%s%s: keys are expected under it", prefix, key);
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
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type == YAML_MAPPING_END_EVENT)
			return 0;
		mark = r->yaml.event.start_mark;
		if (r->yaml.event.type != YAML_SCALAR_EVENT)
			return yaml_refuse(&r->yaml, mark, "a key is expected here");
		if ((e = yaml_scalar(&r->yaml, "key", &text)) < 0)
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
				return yaml_refuse(&r->yaml, mark,
						   "key '%s%s' is here a second time", prefix, key);
			any[i] = true;
			break;
		}
		if ((e = yaml_next(&r->yaml)) < 0 || (e = read_key(r, prefix, key, mark, seen)) < 0)
			return e;
	}
}

int config_parse(struct config *c, const char *name, const char *text, size_t n, struct err *err)
{
	struct reader r = {.c = c};
	bool seen[CONFIG_OPTIONS] = {false};
	int e;

	if (c->file)
		return err_set(err, EINVAL, "%s: a second cluster file; %s was read before", name,
			       c->file);
	c->file = strdup(name);
	if (!c->file)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	e = yaml_begin(&r.yaml, name, text, n, "cluster:, model:, exchange:", err);
	if (e == 0)
		e = read_level(&r, "", seen);
	if (e == 0)
		e = yaml_end(&r.yaml);
	yaml_deinit(&r.yaml);
	return e;
}

int config_file(struct config *c, const char *path, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r = yaml_load(path, "cluster file", &text, &n, err);

	r = r < 0 ? r : config_parse(c, path, text, n, err);
	if (r == 0 && kept_files_beside(c, path) < 0)
		r = err_set(err, ENOMEM, "%s: out of memory", path);
	return r;
}
