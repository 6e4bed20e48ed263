/* See report.h. */
#include "nbox/report/report.h"

#include <stdarg.h>
#include <string.h>

#include "base/plain.h"

void report_warn(struct report *r, const char *fmt, ...)
{
	va_list ap;
	char *text = r->warnings[r->n_warnings];

	if (r->n_warnings == REPORT_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(r->warnings[0]), fmt, ap);
	va_end(ap);
	plain_text(text);
	r->n_warnings++;
}

void report_lose(struct report *r, const char *fmt, ...)
{
	size_t used = strlen(r->lost);
	va_list ap;

	if (used)
		used += (size_t)snprintf(r->lost + used, sizeof(r->lost) - used, "; ");
	if (used >= sizeof(r->lost))
		return;
	va_start(ap, fmt);
	vsnprintf(r->lost + used, sizeof(r->lost) - used, fmt, ap);
	va_end(ap);
	plain_text(r->lost);
}

bool report_is_none(const struct report *r)
{
	const char *model = r->header.model;

	return strncmp(model, "none", 4) == 0 && (model[4] == 0 || model[4] == ' ');
}
