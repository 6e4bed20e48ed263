/* See unknown.h. */
#include "nbox/unknown.h"

#include <stdio.h>

#include "base/suggest.h"

int unknown_option(const char *command, const char *word, const char *const *known, size_t n)
{
	const char *near = suggest(word, known, n);

	fprintf(stderr, "nbox %s: unknown option '%s'%s%s%s nbox %s --help\n", command, word,
		near ? "; did you mean '" : "; see", near ? near : "", near ? "'? See" : "",
		command);
	return 2;
}
