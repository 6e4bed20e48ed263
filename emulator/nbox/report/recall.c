/* See recall.h. */
#include "nbox/report/recall.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/json/json-file.h"
#include "nbox/report/classes.h"

static bool has_warning(const struct report *r, const char *text)
{
	for (uint32_t i = 0; i < r->n_warnings; i++)
		if (!strcmp(r->warnings[i], text))
			return true;
	return false;
}

static void recall_counts(struct report *r, const json_t *list)
{
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		struct report_counts *c = &r->counts[r->n_counts];
		const char *kind = json_string_value(json_object_get(o, "op"));

		if (r->n_counts == REPORT_COUNTS_MAX || !kind || coll_kind_parse(kind) < 0)
			return;
		c->kind = (uint32_t)coll_kind_parse(kind);
		c->n_ops = (uint64_t)json_integer_value(json_object_get(o, "ops"));
		json_text(o, "how", c->how, sizeof(c->how));
		json_text(o, "law", c->law, sizeof(c->law));
		json_text(o, "text", c->text, sizeof(c->text));
		r->n_counts++;
	}
}

void report_recall(struct report *rep, const char *path)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct err why = {""};
	int r = json_file_read(path, &o, &why);
	json_t *warnings = json_object_get(o, "warnings"), *w;
	const char *network = json_string_value(json_object_get(o, "network"));
	const char *device = json_string_value(json_object_get(o, "device"));
	size_t i;

	if (r < 0 && r != -ENOENT)
		report_warn(rep, "%s; the warnings that it held are missing here", why.text);
	if (network)
		snprintf(rep->network, sizeof(rep->network), "%s", network);
	if (device)
		snprintf(rep->device, sizeof(rep->device), "%s", device);
	plain_text(rep->network);
	plain_text(rep->device);
	recall_counts(rep, json_object_get(o, "counts"));
	report_classes_recall(rep, json_object_get(o, "classes"));
	json_array_foreach(warnings, i,
			   w) if (json_string_value(w) && !has_warning(rep, json_string_value(w)))
		report_warn(rep, "%s", json_string_value(w));
}
