/* How the job ended, and why there may be nothing to report: see report.h. */
#include "cli/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/record.h"
#include "wire/wire.h"

static FILE *open_beside(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return dir && snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

/* Workers may differ. */
static void add_payload_memory(struct report *r, const char *what)
{
	size_t used = strlen(r->payload_memory);

	snprintf(r->payload_memory + used, sizeof(r->payload_memory) - used, "%s%s", used ? "; " : "", what);
}

/* What workers had to say (notes.txt). */
static void add_notes(struct report *r, const char *dir)
{
	FILE *f = open_beside(dir, RECORD_NOTES);
	char line[600];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, WIRE_NOTE_PAYLOAD, strlen(WIRE_NOTE_PAYLOAD)))
			add_payload_memory(r, line + strlen(WIRE_NOTE_PAYLOAD));
		else
			report_warn(r, "%s", line);
	}
	if (f)
		fclose(f);
}

/* The first line of aborts.txt, which nboxd writes when a communicator is aborted. Return: @buf; "" without one. */
static const char *first_abort(const char *dir, char *buf, size_t size)
{
	FILE *f = open_beside(dir, RECORD_ABORTS);

	buf[0] = 0;
	if (f && !fgets(buf, (int)size, f))
		buf[0] = 0;
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

void report_outcome(struct report *r, int exit_code, const char *dir)
{
	char abort[400], code[64] = "";

	add_notes(r, dir);
	first_abort(dir, abort, sizeof(abort));
	r->is_empty = !r->n_ops && exit_code > 0 && !abort[0] && r->n_warnings == 0;
	if (exit_code > 0)
		snprintf(code, sizeof(code), "the job ended with exit code %d", exit_code);
	if (r->n_ops && exit_code > 0)
		report_warn(r, "%s: these figures are of what came before%s%s", code, abort[0] ? "; " : "", abort);
	else if (!r->n_ops && (exit_code > 0 || abort[0]))
		report_warn(r, "no op was recorded: %s%s%s%s", code, code[0] ? " before its first op was over" : "",
			    code[0] && abort[0] ? "; " : "", abort);
	else if (!r->n_ops)
		report_warn(r, "no op was recorded: the job ended before its first op was over, called NCCL not at all, or not "
			       "through libnbox.so (one that is linked statically or opened by its path cannot be reached: "
			       "see `readelf -d` of what calls it)");
}
