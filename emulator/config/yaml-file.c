/* See yaml-file.h. */
#include "config/yaml-file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int yaml_refuse(struct yaml *y, yaml_mark_t mark, const char *fmt, ...)
{
	char sentence[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(y->err, EINVAL, "%s:%zu:%zu: %s", y->name, mark.line + 1, mark.column + 1,
		       sentence);
}

/* Is the line, counted from 0, indented with a tab? libyaml says of one only that it cannot start a
 * token. */
static bool has_tab(const struct yaml *y, size_t line)
{
	const char *p = y->text, *end = y->text + y->n;

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

int yaml_next(struct yaml *y)
{
	yaml_event_delete(&y->event);
	memset(&y->event, 0, sizeof(y->event));
	if (!yaml_parser_parse(&y->parser, &y->event)) {
		yaml_mark_t mark = y->parser.problem_mark;

		if (y->parser.error == YAML_MEMORY_ERROR)
			return err_set(y->err, ENOMEM, "%s: out of memory", y->name);
		if (y->parser.error == YAML_READER_ERROR)
			return err_set(y->err, EINVAL, "%s: byte %zu: %s", y->name,
				       y->parser.problem_offset,
				       y->parser.problem ? y->parser.problem : "not UTF-8");
		if (has_tab(y, mark.line))
			return yaml_refuse(y, mark,
					   "line %zu is indented with a tab; YAML wants spaces",
					   mark.line + 1);
		return yaml_refuse(
			y, mark, "no YAML: %s%s%s%s", y->parser.context ? y->parser.context : "",
			y->parser.context ? ", " : "", y->parser.problem ? y->parser.problem : "?",
			y->parser.problem && strstr(y->parser.problem, "mapping values")
				? " (a text that has a colon and a blank needs \"...\" around it)"
				: "");
	}
	if (y->event.type == YAML_ALIAS_EVENT)
		return yaml_refuse(y, y->event.start_mark, "aliases (*name) are not taken here");
	if (is_marked(&y->event))
		return yaml_refuse(y, y->event.start_mark,
				   "tags (!) and anchors (&) are not taken here");
	return 0;
}

int yaml_scalar(struct yaml *y, const char *what, const char **ret)
{
	const char *text = (const char *)y->event.data.scalar.value;
	size_t n = y->event.data.scalar.length;
	bool plain = y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (y->event.type != YAML_SCALAR_EVENT)
		return yaml_refuse(y, y->event.start_mark, "%s is expected here, as one word",
				   what);
	if (y->event.data.scalar.tag || y->event.data.scalar.anchor)
		return yaml_refuse(y, y->event.start_mark,
				   "%s: tags (!) and anchors (&) are not taken here", what);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return yaml_refuse(y, y->event.start_mark,
					   "%s: a control character in the text", what);
	if (plain && (n == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
		return yaml_refuse(y, y->event.start_mark, "%s: no value", what);
	*ret = text;
	return 0;
}

int yaml_begin(struct yaml *y, const char *name, const char *text, size_t n, const char *keys,
	       struct err *err)
{
	int r;

	*y = (struct yaml){.name = name, .text = text, .n = n, .err = err};
	if (n > YAML_MAX_BYTES)
		return err_set(err, EINVAL, "%s: such a file has at most %u bytes", name,
			       YAML_MAX_BYTES);
	if (!yaml_parser_initialize(&y->parser))
		return err_set(err, ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&y->parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
	if ((r = yaml_next(y)) < 0) /* stream start */
		return r;
	if ((r = yaml_next(y)) < 0)
		return r;
	if (y->event.type == YAML_STREAM_END_EVENT)
		return err_set(err, EINVAL, "%s:1:1: the file is empty", name);
	if ((r = yaml_next(y)) < 0)
		return r;
	if (y->event.type != YAML_MAPPING_START_EVENT)
		return yaml_refuse(y, y->event.start_mark, "keys are expected here, such as %s",
				   keys);
	return 0;
}

int yaml_end(struct yaml *y)
{
	int r = yaml_next(y);

	r = r < 0 ? r : yaml_next(y);
	if (r == 0 && y->event.type != YAML_STREAM_END_EVENT)
		return yaml_refuse(y, y->event.start_mark, "a second document in one file");
	return r;
}

void yaml_deinit(struct yaml *y)
{
	yaml_event_delete(&y->event);
	yaml_parser_delete(&y->parser);
}

int yaml_load(const char *path, const char *what, char **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	FILE *f = fopen(path, "re");

	if (!f)
		return err_set(err, errno, "%s: cannot read the %s: %s", path, what,
			       strerror(errno));
	if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
		fclose(f);
		return err_set(err, EISDIR, "%s: is a directory, not a %s", path, what);
	}
	text = malloc(YAML_MAX_BYTES + 1);
	*ret_n = text ? fread(text, 1, YAML_MAX_BYTES + 1, f) : 0;
	fclose(f);
	if (!text)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	*ret = steal_ptr(text);
	return 0;
}
