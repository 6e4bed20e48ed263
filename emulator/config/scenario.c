/* See scenario.h. */
#include "config/scenario.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "config/scenario-event.h"
#include "config/yaml-file.h"
#include "scenario/expect.h"
#include "scenario/step-count.h"

#define KEY_MAX 64
#define ITEMS_MAX 4096 /* what-ifs of a file: each costs something at every op */

struct reader {
	struct yaml yaml;
	struct scenario *s;
};

void scenario_deinit(struct scenario *s)
{
	scenario_list_deinit(&s->steps);
	scenario_list_deinit(&s->what_ifs);
	scenario_list_deinit(&s->expects);
}

static void event_deinit(struct scenario_event *e)
{
	scenario_list_deinit(&e->whats);
	scenario_list_deinit(&e->keys);
}

static int no_memory(struct reader *r)
{
	return err_set(r->yaml.err, ENOMEM, "%s: out of memory", r->yaml.name);
}

static int take(struct reader *r, struct scenario_list *l, char *text)
{
	const yaml_mark_t m = r->yaml.event.start_mark;

	return scenario_list_add(l, text, (unsigned)m.line + 1, (unsigned)m.column + 1) < 0
		       ? no_memory(r)
		       : 0;
}

/* The current event, a text. */
static int read_text(struct reader *r, const char *what, struct scenario_list *l)
{
	const char *text;
	int e;

	if (r->yaml.event.type != YAML_SCALAR_EVENT)
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
				   "%s: a text is expected here", what);
	e = yaml_scalar(&r->yaml, what, &text);
	return e < 0 ? e : take(r, l, strdup(text));
}

/* A text, or a list of them. */
static int read_texts(struct reader *r, const char *what, struct scenario_list *l)
{
	int e;

	if (r->yaml.event.type != YAML_SEQUENCE_START_EVENT)
		return read_text(r, what, l);
	for (;;) {
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if ((e = read_text(r, what, l)) < 0)
			return e;
	}
}

/* The next key of a mapping; "" behind the last. */
static int read_key(struct reader *r, char key[KEY_MAX], yaml_mark_t *ret_mark)
{
	const char *text;
	int e = yaml_next(&r->yaml);

	key[0] = '\0';
	if (e < 0 || r->yaml.event.type == YAML_MAPPING_END_EVENT)
		return e;
	*ret_mark = r->yaml.event.start_mark;
	if (r->yaml.event.type != YAML_SCALAR_EVENT)
		return yaml_refuse(&r->yaml, *ret_mark, "a key is expected here");
	if ((e = yaml_scalar(&r->yaml, "key", &text)) < 0)
		return e;
	if (!text[0] || strlen(text) >= KEY_MAX || strpbrk(text, ",:="))
		return yaml_refuse(&r->yaml, *ret_mark, "'%.64s' is no key", text);
	snprintf(key, KEY_MAX, "%s", text);
	return yaml_next(&r->yaml);
}

/* The texts of the current event joined by '+', without blanks or commas. */
static int read_value(struct reader *r, const char *key, char *buf, size_t size)
{
	struct scenario_list l = {0};
	const yaml_mark_t mark = r->yaml.event.start_mark;
	int e = read_texts(r, key, &l);
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < l.n && e == 0; i++) {
		int more = snprintf(buf + n, size - n, "%s%s", i ? "+" : "", l.items[i].text);

		n += (size_t)more;
		if (n >= size)
			e = yaml_refuse(&r->yaml, mark, "%s: that is too long", key);
	}
	scenario_list_deinit(&l);
	if (e == 0 && (!buf[0] || strpbrk(buf, ", ")))
		return yaml_refuse(&r->yaml, mark,
				   "%s: no commas or blanks; several are a list: [1, 5]", key);
	return e;
}

/* {ops: 4, op: allreduce}, or as the option has it. */
static int read_steps(struct reader *r)
{
	char key[KEY_MAX], value[128], all[256] = "";
	yaml_mark_t mark, start = r->yaml.event.start_mark;
	size_t n = 0;
	int e;

	if (r->yaml.event.type != YAML_MAPPING_START_EVENT)
		return read_text(r, "steps", &r->s->steps);
	while ((e = read_key(r, key, &mark)) == 0 && key[0]) {
		if ((e = read_value(r, key, value, sizeof(value))) < 0)
			return e;
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s=%s", n ? "," : "", key,
				      value);
		if (n >= sizeof(all))
			return yaml_refuse(&r->yaml, mark, "steps: that is too long");
	}
	if (e < 0)
		return e;
	return scenario_list_add(&r->s->steps, strdup(all), (unsigned)start.line + 1,
				 (unsigned)start.column + 1) < 0
		       ? no_memory(r)
		       : 0;
}

/* {step: 20}, "step 20", "20 steps", "30s". */
static int read_span(struct reader *r, const char *key, char *ret, size_t size)
{
	const yaml_mark_t mark = r->yaml.event.start_mark;
	const char *text;
	char inner[KEY_MAX], value[32];
	yaml_mark_t at = mark;
	int e;

	if (r->yaml.event.type == YAML_MAPPING_START_EVENT) {
		if ((e = read_key(r, inner, &at)) < 0)
			return e;
		if (strcmp(inner, "step") != 0 && strcmp(inner, "steps") != 0)
			return yaml_refuse(&r->yaml, at, "%s: {step: N}, 'step N' or a time", key);
		if ((e = read_value(r, inner, value, sizeof(value))) < 0 ||
		    (e = read_key(r, inner, &at)) < 0)
			return e;
		if (inner[0])
			return yaml_refuse(&r->yaml, at, "%s: one key is expected: {step: N}", key);
		snprintf(ret, size, "%.24ssteps", value);
		return 0;
	}
	if (r->yaml.event.type != YAML_SCALAR_EVENT)
		return yaml_refuse(&r->yaml, mark,
				   "%s: 'step 20', '20 steps' or a time such as 30s", key);
	e = yaml_scalar(&r->yaml, key, &text);
	if (e == 0 && !scenario_span(text, ret, size))
		return yaml_refuse(&r->yaml, mark, "%s: '%.32s...' is too long", key, text);
	return e;
}

static const char *const event_keys[] = {"at",   "for",   "every", "ramp", "what",
					 "rank", "node",  "rack",  "rail", "communicator",
					 "op",   "bytes", "link",  "name"};

static int unknown(struct reader *r, yaml_mark_t mark, const char *key, const char *const *keys,
		   size_t n)
{
	const char *near = suggest(key, keys, n);
	char all[200] = "";
	size_t used = 0;

	for (size_t i = 0; i < n && used < sizeof(all); i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 keys[i]);
	return near ? yaml_refuse(&r->yaml, mark, "unknown key '%s'; did you mean '%s'?", key, near)
		    : yaml_refuse(&r->yaml, mark, "unknown key '%s'; there are: %s", key, all);
}

static bool has_key(const struct scenario_event *e, const char *key)
{
	for (size_t i = 0; i < e->keys.n; i++)
		if (strncmp(e->keys.items[i].text, key, strlen(key)) == 0 &&
		    e->keys.items[i].text[strlen(key)] == '=')
			return true;
	return false;
}

static int read_target(struct reader *r, const char *key, struct scenario_event *e)
{
	char value[200], *text = NULL;
	int c = read_value(r, key, value, sizeof(value));

	if (c == 0 && asprintf(&text, "%s=%s", key, value) < 0)
		return no_memory(r);
	return c < 0 ? c : take(r, &e->keys, text);
}

static int read_event_key(struct reader *r, const char *key, yaml_mark_t mark,
			  struct scenario_event *e)
{
	char *span = !strcmp(key, "at")      ? e->at
		     : !strcmp(key, "for")   ? e->lasts
		     : !strcmp(key, "every") ? e->every
		     : !strcmp(key, "ramp")  ? e->ramp
					     : NULL;
	size_t k = 0;

	while (k < ARRAY_SIZE(event_keys) && strcmp(event_keys[k], key) != 0)
		k++;
	if (k == ARRAY_SIZE(event_keys))
		return unknown(r, mark, key, event_keys, k);
	if ((span && span[0]) || (!strcmp(key, "what") && e->whats.n) || has_key(e, key))
		return yaml_refuse(&r->yaml, mark, "key '%s' is here a second time", key);
	if (span)
		return read_span(r, key, span, sizeof(e->at));
	return strcmp(key, "what") ? read_target(r, key, e) : read_texts(r, key, &e->whats);
}

static int read_event(struct reader *r)
{
	CLEANUP(event_deinit) struct scenario_event e = {0};
	const yaml_mark_t start = r->yaml.event.start_mark;
	struct err why = {""};
	char key[KEY_MAX];
	yaml_mark_t mark;
	int c;

	if (r->yaml.event.type != YAML_MAPPING_START_EVENT)
		return yaml_refuse(&r->yaml, start,
				   "events: keys are expected: {at: ..., what: ...}");
	while ((c = read_key(r, key, &mark)) == 0 && key[0])
		if ((c = read_event_key(r, key, mark, &e)) < 0)
			return c;
	if (c < 0)
		return c;
	if (!e.whats.n)
		return yaml_refuse(&r->yaml, start,
				   "an event without what: it is a what-if, such as "
				   "slow:rank=3,compute=1.5");
	c = scenario_event_compile(&e, &r->s->what_ifs, &why);
	if (c < 0)
		return yaml_refuse(&r->yaml, start, "%s", why.text);
	if (r->s->what_ifs.n > ITEMS_MAX)
		return yaml_refuse(&r->yaml, start, "these events are more than %d what-ifs",
				   ITEMS_MAX);
	r->s->n_events++;
	return 0;
}

static int read_events(struct reader *r)
{
	int e;

	if (r->yaml.event.type != YAML_SEQUENCE_START_EVENT)
		return yaml_refuse(&r->yaml, r->yaml.event.start_mark,
				   "events: a list is expected: - at: ...");
	for (;;) {
		if ((e = yaml_next(&r->yaml)) < 0)
			return e;
		if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if ((e = read_event(r)) < 0)
			return e;
	}
}

static int read_document(struct reader *r)
{
	static const char *const keys[] = {"steps", "events", "expect"};
	bool seen[ARRAY_SIZE(keys)] = {false};
	char key[KEY_MAX];
	yaml_mark_t mark;
	int e;

	while ((e = read_key(r, key, &mark)) == 0 && key[0]) {
		size_t k = 0;

		while (k < ARRAY_SIZE(keys) && strcmp(keys[k], key) != 0)
			k++;
		if (k == ARRAY_SIZE(keys))
			return unknown(r, mark, key, keys, k);
		if (seen[k])
			return yaml_refuse(&r->yaml, mark, "key '%s' is here a second time", key);
		seen[k] = true;
		e = k == 0   ? read_steps(r)
		    : k == 1 ? read_events(r)
			     : read_texts(r, key, &r->s->expects);
		if (e < 0)
			return e;
	}
	return e;
}

static int refuse_item(const struct reader *r, const struct scenario_item *i, const char *why)
{
	return err_set(r->yaml.err, EINVAL, "%s:%u:%u: %s", r->yaml.name, i->line, i->column, why);
}

/* What needs no cluster to be wrong. */
static int check_items(const struct reader *r)
{
	struct step_rule rule;
	struct expect expect;
	struct err why = {""};

	for (size_t i = 0; i < r->s->steps.n; i++)
		if (step_rule_parse(r->s->steps.items[i].text, &rule, &why) < 0)
			return refuse_item(r, &r->s->steps.items[i], why.text);
	for (size_t i = 0; i < r->s->expects.n; i++)
		if (expect_parse(r->s->expects.items[i].text, &expect, &why) < 0)
			return refuse_item(r, &r->s->expects.items[i], why.text);
	return 0;
}

int scenario_parse(const char *name, const char *text, size_t n, struct scenario *ret,
		   struct err *err)
{
	struct scenario s = {0};
	struct reader r = {.s = &s};
	int e = yaml_begin(&r.yaml, name, text, n, "events:, expect:, steps:", err);

	if (e == 0)
		e = read_document(&r);
	if (e == 0)
		e = yaml_end(&r.yaml);
	if (e == 0)
		e = check_items(&r);
	yaml_deinit(&r.yaml);
	if (e < 0)
		scenario_deinit(&s);
	else
		*ret = s;
	return e;
}
