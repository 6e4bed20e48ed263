/* What the model is called, see config.h. */
#include <stdio.h>
#include <string.h>

#include "config/kept-file.h"

/* The @i-th of all what-ifs, delays first. */
static const char *what_if_text(const struct config *c, size_t i)
{
	if (i < c->n_what_ifs)
		return c->what_ifs[i];
	i -= c->n_what_ifs;
	if (i < c->n_link_changes)
		return c->link_changes[i].text;
	i -= c->n_link_changes;
	return i < c->n_reshardings ? c->reshardings[i].text
				    : c->failures[i - c->n_reshardings].text;
}

char *config_model(const struct config *c, char *buf, size_t size)
{
	size_t used = strlen(kept_file_shown(c, CONFIG_MODEL, buf, size));
	size_t n = c->n_what_ifs + c->n_link_changes + c->n_reshardings + c->n_failures;

	for (size_t i = 0; i < n && used < size; i++) {
		const char *text = what_if_text(c, i);

		if (used + strlen(text) + 32 > size && i + 1 < n) {
			snprintf(buf + used, size - used, " + %zu more what-ifs", n - i);
			break;
		}
		used += (size_t)snprintf(buf + used, size - used, " + %s", text);
	}
	return buf;
}
