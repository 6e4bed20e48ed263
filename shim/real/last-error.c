/* See last-error.h. */
#include "shim/real/last-error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/plain.h"

static __thread char text[ERR_TEXT_MAX];

ncclResult_t last_error_set(ncclResult_t result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_info("%s", plain_text(text));
	return result;
}

const char *last_error_get(void)
{
	return text;
}
