/* See plain.h. */
#include "base/plain.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters that move or hide what stands beside them: C1, line and paragraph ends, directions of
 * writing. */
static bool is_obeyed(uint32_t c)
{
	return c < 0xa0 || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Return: the bytes of the character at @s; 0: it is not safe to print. */
static size_t char_bytes(const unsigned char *s)
{
	static const uint32_t least[] = {
		0, 0, 0x80, 0x800,
		0x10000}; /* by number of bytes: a smaller value in so many bytes is no UTF-8 */
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc0 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf8 ? 4
				 : 0;
	uint32_t c = n > 1 ? s[0] & (0xffu >> (n + 1)) : s[0];

	if (n <= 1)
		return n == 1 && c >= ' ' && c != 0x7f;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || is_obeyed(c) ? 0 : n;
}

char *plain_text(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s;) {
		size_t n = char_bytes(s);

		if (n == 0)
			*s = '?';
		s += n ? n : 1;
	}
	return text;
}

void plain_xml(const char *text, FILE *to)
{
	for (; *text; text++)
		fprintf(to,
			*text == '<'   ? "&lt;"
			: *text == '&' ? "&amp;"
			: *text == '"' ? "&quot;"
				       : "%c",
			*text);
}

void plain_shell(const char *text, FILE *to)
{
	fputc('\'', to);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", to);
		else
			fputc(*text, to);
	fputc('\'', to);
}
