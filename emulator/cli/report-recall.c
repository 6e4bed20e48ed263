/* What `nbox run` knew of a run and its record does not: read back from the summary.json beside the record. */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/report.h"

static void json_freep(json_t **o)
{
	json_decref(*o);
}

static bool has_warning(const struct report *r, const char *text)
{
	for (uint32_t i = 0; i < r->n_warnings; i++)
		if (!strcmp(r->warnings[i], text))
			return true;
	return false;
}

void report_recall(struct report *r, const char *path)
{
	CLEANUP(json_freep) json_t *o = json_load_file(path, 0, NULL);
	json_t *warnings = json_object_get(o, "warnings"), *w;
	const char *network = json_string_value(json_object_get(o, "network"));
	size_t i;

	if (network)
		snprintf(r->network, sizeof(r->network), "%s", network);
	json_array_foreach(warnings, i, w)
		if (json_string_value(w) && !has_warning(r, json_string_value(w)))
			report_warn(r, "%s", json_string_value(w));
}
