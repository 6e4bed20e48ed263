/* The texts that were given for one option, and where they came from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum config_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_VARIABLE, SOURCE_FLAG, SOURCE_LAUNCHER };

struct config_item {
	char *text;            /* owned */
	unsigned line, column; /* SOURCE_FILE: from 1 */
	const char *file;      /* borrowed; NULL: the cluster file */
};

struct config_value {
	enum config_source source;
	struct config_item *items; /* owned; one but for LIST and MAP */
	size_t n_items;
};

void value_clear(struct config_value *v);
bool value_is_again(const struct config_value *v, size_t i); /* one before @i is the same */
/* Return: 0; -ENOMEM. */
int value_add(struct config_value *v, enum config_source source, const char *text, unsigned line,
	      unsigned column);
