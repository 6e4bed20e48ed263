/* See ops.h. */
#include "op/ops.h"

#include <stdarg.h>
#include <stdio.h>

void ops_warn(struct ops *ops, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ops->sink->warn(ops, text);
}
