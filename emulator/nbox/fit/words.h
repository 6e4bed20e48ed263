/* Values of the options of nbox fit and nbox model. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* @name: the option's, for sentences. Return: 0; -EINVAL: no number from 1 to 1000000000. */
int words_count(const char *name, const char *value, uint32_t *ret, struct err *err);
/* @value is none of the @n that are @known. Return: -EINVAL with the sentence: the nearest, or all.
 */
int words_unknown(const char *name, const char *value, const char *const *known, size_t n,
		  struct err *err);
