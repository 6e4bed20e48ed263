/* A string of JSON, for forms that are printed row by row. */
#pragma once

#include <stdio.h>

/* @text: valid UTF-8 (base/plain.h). */
static inline void json_text(const char *text, FILE *to)
{
	putc('"', to);
	for (const unsigned char *c = (const void *)text; *c; c++)
		if (*c < ' ')
			fprintf(to, "\\u%04x", *c);
		else
			fprintf(to, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	putc('"', to);
}
