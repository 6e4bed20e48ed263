/* See own.h. */
#include <stdarg.h>
#include <stdio.h>

#include "nboxd/full/own.h"

void full_fail(struct full_comm *fc, int code, const char *fmt, ...)
{
	va_list ap;

	if (fc->code)
		return;
	fc->code = code;
	fc->full->n_failed++;
	va_start(ap, fmt);
	vsnprintf(fc->why, sizeof(fc->why), fmt, ap);
	va_end(ap);
}
