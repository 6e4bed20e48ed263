/* See err.h. A text that does not fit is cut at a whole UTF-8 character and ends in "...".
 * Control characters become '?', because names of files and words of other processes are among
 * the texts. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"

#define CUT_MARK "..."

/* @len: bytes of the whole text. */
static void err_mark_cut(struct err *err, int len)
{
	size_t end = sizeof(err->text) - sizeof(CUT_MARK);

	if (len < (int)sizeof(err->text))
		return;
	while (end > 0 && ((unsigned char)err->text[end] & 0xc0) == 0x80)
		end--;
	memcpy(err->text + end, CUT_MARK, sizeof(CUT_MARK));
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (!err)
		return -code;
	va_start(ap, fmt);
	len = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (len < 0)
		err->text[0] = '\0';
	else
		err_mark_cut(err, len);
	plain_text(err->text);
	return -code;
}

int err_prefix(struct err *err, int code, const char *fmt, ...)
{
	struct err old;
	va_list ap;
	int len, rest;

	if (!err)
		return code;
	old = *err;
	va_start(ap, fmt);
	len = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (len < 0) {
		*err = old;
		return code;
	}
	if (len < (int)sizeof(err->text)) {
		rest = snprintf(err->text + len, sizeof(err->text) - (size_t)len, "%s%s",
				old.text[0] ? ": " : "", old.text);
		len += rest > 0 ? rest : 0;
	}
	err_mark_cut(err, len);
	plain_text(err->text);
	return code;
}
