/* The forms of others that nbox report writes, each to a file of its own: one table for the flags,
 * their help and the writing. */
#pragma once

#include <stdbool.h>

#include "base/options.h"
#include "nbox/report/load.h"

#define FORMS 4

struct forms {
	const char *files[FORMS]; /* borrowed; NULL: not asked for */
};

/* Return: false: @w is another flag. */
bool forms_take(struct forms *f, const struct option_word *w);
bool forms_any(const struct forms *f);
/* Return: 0; negative errno, perhaps with a sentence. */
int forms_write(const struct forms *f, const struct loaded_run *run, struct err *err);
/* A line or two each. */
void forms_help(FILE *to);
