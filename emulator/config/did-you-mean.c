/* See did-you-mean.h. */
#include "config/did-you-mean.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "schedule/coll.h"

char *did_you_mean(const char *word, const char *const *names, size_t n, char *buf, size_t size)
{
	const char *near = suggest(word, names, n);
	bool is_kind = near && coll_kind_parse(near) >= 0; /* axes keep their case */
	size_t used;

	snprintf(buf, size, "%s%s%s", near ? "; did you mean '" : "", near ? near : "",
		 near ? "'?" : "");
	for (used = strlen("; did you mean '"); is_kind && buf[used]; used++)
		buf[used] = (char)tolower((unsigned char)buf[used]);
	return buf;
}
