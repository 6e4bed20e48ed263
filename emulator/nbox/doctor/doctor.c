/* See doctor.h. */
#include "nbox/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"

static const char *const level_names[] = {"ok", "note", "WRONG"};

json_t *doctor_add(struct doctor *d, enum doctor_level level, const char *section, const char *name,
		   const char *fmt, ...)
{
	char text[1024], who[256];
	json_t *f;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(who, sizeof(who), "%s", name);
	d->n_wrong += level == DOCTOR_WRONG;
	f = json_pack("{s:s, s:s, s:s, s:s}", "section", section, "name", plain_text(who), "level",
		      level == DOCTOR_WRONG ? "wrong" : level_names[level], "text",
		      plain_text(text));
	if (f && json_array_append_new(d->findings, f) < 0)
		return NULL;
	return f;
}

static const char *text_of(const json_t *finding, const char *key)
{
	const char *s = json_string_value(json_object_get(finding, key));

	return s ? s : "";
}

void doctor_print(const struct doctor *d)
{
	const char *section = "";
	json_t *f;
	size_t i;

	json_array_foreach(d->findings, i, f)
	{
		const char *level = text_of(f, "level");

		if (strcmp(section, text_of(f, "section")) != 0) {
			section = text_of(f, "section");
			printf("%s%s\n", i ? "\n" : "", section);
		}
		printf("  %-6s %-18s %s\n", strcmp(level, "wrong") == 0 ? "WRONG" : level,
		       text_of(f, "name"), text_of(f, "text"));
	}
}
