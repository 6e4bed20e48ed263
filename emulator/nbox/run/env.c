/* See env.h. */
#include "nbox/run/env.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

int env_set(const char *name, const char *fmt, ...)
{
	CLEANUP(freep) char *value = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (n < 0)
		value = NULL;
	return n < 0 || setenv(name, value, 1) < 0 ? -ENOMEM : 0;
}

int env_prepend(const char *name, const char *value)
{
	const char *old = getenv(name);

	return old && old[0] ? env_set(name, "%s:%s", value, old) : env_set(name, "%s", value);
}
