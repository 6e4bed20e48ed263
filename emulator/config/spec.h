/* "name:key=value,key=value": the what-ifs that nbox itself carries out. Those of plug-ins:
 * engine/delay-host.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct spec {
	char copy[256];
	struct spec_pair {
		const char *key, *value; /* point into @copy */
	} pairs[12];
	size_t n;
};

/* Is @text "name" or "name:..."? */
bool spec_is(const char *text, const char *name);
/* Return: 0; -EINVAL with the sentence. */
int spec_split(const char *text, struct spec *ret, struct err *err);
/* The sentence for a key that nobody knows. Return: -EINVAL. */
int spec_unknown(const char *key, const char *const *keys, size_t n, struct err *err);
