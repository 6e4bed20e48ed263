/* See yaml-doc.h. */
#include "fabric/read/yaml-doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"

#define KEYS_MAX 64  /* of a mapping */
#define DEPTH_MAX 16 /* of brackets */

int yaml_doc_refuse(struct yaml_doc *d, const yaml_node_t *at, const char *fmt, ...)
{
	char sentence[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(d->err, EINVAL, "%s:%zu:%zu: %s", d->name, at->start_mark.line + 1,
		       at->start_mark.column + 1, sentence);
}

/* libyaml's own sentence of why this is no YAML. */
static int refuse_syntax(struct yaml_doc *d, const yaml_parser_t *p)
{
	if (p->error == YAML_MEMORY_ERROR)
		return err_set(d->err, ENOMEM, "%s: out of memory", d->name);
	if (p->error == YAML_READER_ERROR)
		return err_set(d->err, EINVAL, "%s: byte %zu: %s", d->name, p->problem_offset,
			       p->problem ? p->problem : "not UTF-8");
	return err_set(d->err, EINVAL, "%s:%zu:%zu: no YAML: %s", d->name, p->problem_mark.line + 1,
		       p->problem_mark.column + 1, p->problem ? p->problem : "?");
}

static int load(struct yaml_doc *d, yaml_parser_t *p)
{
	yaml_document_t second;
	bool has_second;

	if (!yaml_parser_load(p, &d->document))
		return refuse_syntax(d, p);
	if (!yaml_doc_root(d)) {
		yaml_document_delete(&d->document);
		return err_set(d->err, EINVAL, "%s:1:1: the file is empty", d->name);
	}
	if (!yaml_parser_load(p, &second)) {
		yaml_document_delete(&d->document);
		return refuse_syntax(d, p);
	}
	has_second = yaml_document_get_root_node(&second);
	yaml_document_delete(&second);
	if (has_second) {
		yaml_document_delete(&d->document);
		return err_set(d->err, EINVAL, "%s: a second document; one file, one fabric",
			       d->name);
	}
	return 0;
}

/* Brackets inside each other cost libyaml their number squared, and no fabric has many. */
static int check_depth(struct yaml_doc *d, const char *text, size_t n)
{
	size_t depth = 0, line = 1;

	for (size_t i = 0; i < n; i++) {
		line += text[i] == '\n';
		if (text[i] == '[' || text[i] == '{')
			depth++;
		else if ((text[i] == ']' || text[i] == '}') && depth > 0)
			depth--;
		if (depth > DEPTH_MAX)
			return err_set(d->err, EINVAL, "%s:%zu:1: brackets deeper than %d", d->name,
				       line, DEPTH_MAX);
	}
	return 0;
}

int yaml_doc_open(struct yaml_doc *d, const char *name, const char *text, size_t n, struct err *err)
{
	yaml_parser_t parser;
	int r;

	*d = (struct yaml_doc){.name = name, .err = err};
	r = check_depth(d, text, n);
	if (r < 0)
		return r;
	if (!yaml_parser_initialize(&parser))
		return err_set(err, ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	r = load(d, &parser);
	yaml_parser_delete(&parser);
	if (r < 0)
		return r;
	r = yaml_doc_mapping(d, yaml_doc_root(d), "a fabric");
	if (r < 0)
		yaml_doc_close(d);
	return r;
}

void yaml_doc_close(struct yaml_doc *d)
{
	yaml_document_delete(&d->document);
}

yaml_node_t *yaml_doc_root(struct yaml_doc *d)
{
	return yaml_document_get_root_node(&d->document);
}

yaml_node_t *yaml_doc_node(struct yaml_doc *d, int index)
{
	return yaml_document_get_node(&d->document, index);
}

/* Those that XML and terminals cannot have: U+0000 to U+001F, U+007F, U+FFFE, U+FFFF. */
static bool is_control(const char *at)
{
	return (unsigned char)at[0] < 0x20 || at[0] == 0x7f ||
	       strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0;
}

/* libyaml gives each node a tag of its own kind, where the file has none. */
static bool is_tagged(const yaml_node_t *node)
{
	const char *tag = (const char *)node->tag;

	return tag && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, YAML_SEQ_TAG) != 0 &&
	       strcmp(tag, YAML_MAP_TAG) != 0;
}

int yaml_doc_text(struct yaml_doc *d, const yaml_node_t *node, const char *what, const char **ret)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE)
		return yaml_doc_refuse(d, node, "%s: one value is expected here", what);
	if (is_tagged(node))
		return yaml_doc_refuse(d, node, "%s: tags (!) are not taken here", what);
	for (size_t i = 0; i < node->data.scalar.length; i++)
		if (is_control(&text[i]))
			return yaml_doc_refuse(d, node, "%s: a control character in the text",
					       what);
	if (!text[0])
		return yaml_doc_refuse(d, node, "%s: no value", what);
	*ret = text;
	return 0;
}

int yaml_doc_count(struct yaml_doc *d, const yaml_node_t *node, const char *what, uint32_t *ret)
{
	struct err err = {""};
	const char *text;
	uint64_t value;
	int r = yaml_doc_text(d, node, what, &text);

	if (r < 0)
		return r;
	if (units_count(text, &value, &err) < 0)
		return yaml_doc_refuse(d, node, "%s: %s", what, err.text);
	if (value > UINT32_MAX)
		return yaml_doc_refuse(d, node, "%s: %.24s is too many", what, text);
	*ret = (uint32_t)value;
	return 0;
}

int yaml_doc_mapping(struct yaml_doc *d, const yaml_node_t *node, const char *what)
{
	const yaml_node_pair_t *p = node->data.mapping.pairs.start;

	if (node->type != YAML_MAPPING_NODE)
		return yaml_doc_refuse(d, node, "%s: keys are expected under it", what);
	if (node->data.mapping.pairs.top - p > KEYS_MAX)
		return yaml_doc_refuse(d, node, "%s: more than %d keys", what, KEYS_MAX);
	for (; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_doc_node(d, p->key);
		const char *text;
		int r = yaml_doc_text(d, key, "key", &text);

		if (r < 0)
			return r;
		if (yaml_doc_get(d, node, text) != yaml_doc_node(d, p->value))
			return yaml_doc_refuse(d, key, "key '%.64s' is here a second time", text);
	}
	return 0;
}

int yaml_doc_sequence(struct yaml_doc *d, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return yaml_doc_refuse(d, node, "%s: a list is expected: [...]", what);
	return 0;
}

yaml_node_t *yaml_doc_get(struct yaml_doc *d, const yaml_node_t *mapping, const char *key)
{
	const yaml_node_pair_t *p = mapping->data.mapping.pairs.start;

	for (; p < mapping->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = yaml_doc_node(d, p->key);

		if (k->type == YAML_SCALAR_NODE && strcmp((char *)k->data.scalar.value, key) == 0)
			return yaml_doc_node(d, p->value);
	}
	return NULL;
}

int yaml_doc_unknown(struct yaml_doc *d, const yaml_node_t *at, const char *key,
		     const char *const *keys)
{
	char all[400] = "";
	size_t n = 0, used = 0;
	const char *near;

	while (keys[n])
		n++;
	near = suggest_long(key, keys, n);
	if (near)
		return yaml_doc_refuse(d, at, "unknown key '%.64s'; did you mean '%s'?", key, near);
	for (size_t i = 0; i < n && used < sizeof(all); i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 keys[i]);
	return yaml_doc_refuse(d, at, "unknown key '%.64s'; there are: %s", key, all);
}
