/* libyaml's events with places in the sentences, for the files of this room. No aliases, tags or
 * second document: a file is what it says. Numbers stay texts. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "base/err.h"

#define YAML_MAX_BYTES (1u << 20)

struct yaml {
	const char *name; /* of the file */
	const char *text; /* borrowed, @n bytes */
	size_t n;
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; empty when type is YAML_NO_EVENT */
	struct err *err;
};

/* Up to the opening of the mapping that the document is. @keys: some of its keys, for a sentence.
 * Return: 0; negative errno with the sentence; yaml_deinit() either way. */
int yaml_begin(struct yaml *y, const char *name, const char *text, size_t n, const char *keys,
	       struct err *err);
/* The mapping was closed: there is nothing more. Return: as above. */
int yaml_end(struct yaml *y);
void yaml_deinit(struct yaml *y);
/* The next event. Return: as above. */
int yaml_next(struct yaml *y);
/* "FILE:LINE:COLUMN: sentence". Return: -EINVAL. */
int yaml_refuse(struct yaml *y, yaml_mark_t mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The text of the current event: a scalar, no control bytes, not null, not tagged. @what: it, for
 * a sentence. The event's. Return: 0; -EINVAL with the sentence. */
int yaml_scalar(struct yaml *y, const char *what, const char **ret);
/* All of a file. @what: "cluster file". Return: 0, *ret is the caller's to free(); negative errno
 * with the sentence. */
int yaml_load(const char *path, const char *what, char **ret, size_t *ret_n, struct err *err);
