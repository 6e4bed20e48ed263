/* See outcome.h. */
#include "nbox/report/outcome.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "engine/record-read.h"
#include "wire/wire.h"

#define BESIDE_MAX (1 << 16) /* bytes: nboxd writes 8 notes, and of 100 aborts a line each */

/* Reads a file of the run. Return: its text, the caller's; NULL where there is none. A file that
 * cannot be read becomes a warning. */
static char *read_beside(struct report *rep, const char *dir, const char *name)
{
	struct err why = {""};
	char path[PATH_MAX], *text;
	size_t n;
	int r;

	if (!dir || snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return NULL;
	r = file_read(path, BESIDE_MAX, &text, &n, &why);
	if (r < 0 && r != -ENOENT)
		report_warn(rep, "%s; what it says of the run is missing here", why.text);
	return r < 0 ? NULL : text;
}

/* Several workers may name different kinds of memory; several jobs may go by different rules. */
static void add(char *list, size_t size, const char *what)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? "; " : "", what);
}

/* Is @line about @what? Then *ret: what stands behind it. */
static bool is_about(const char *line, const char *what, const char **ret)
{
	size_t n = strlen(what);

	*ret = line + n;
	return strncmp(line, what, n) == 0;
}

/* What workers had to say (notes.txt). */
static void add_notes(struct report *r, const char *dir)
{
	CLEANUP(freep) char *text = read_beside(r, dir, RECORD_NOTES);
	const char *what;
	char *rest = NULL;

	for (char *line = strtok_r(text ? text : (char[]){""}, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (is_about(line, WIRE_NOTE_PAYLOAD, &what))
			add(r->payload_memory, sizeof(r->payload_memory), what);
		else if (is_about(line, WIRE_NOTE_DECIDED, &what))
			add(r->decided_by, sizeof(r->decided_by), what);
		else if (is_about(line, WIRE_NOTE_TOOK, &what))
			add(r->took, sizeof(r->took), what);
		else if (is_about(line, WIRE_NOTE_TRAFFIC, &what))
			add(r->messages, sizeof(r->messages), what);
		else if (is_about(line, WIRE_NOTE_NO_GPU, &what))
			snprintf(r->device, sizeof(r->device), "%s", line);
		else
			report_warn(r, "%s", line);
	}
	plain_text(r->device);
	plain_text(r->decided_by);
	plain_text(r->payload_memory);
	plain_text(r->took);
	plain_text(r->messages);
}

/* The first line of the file @name of the run. Return: @buf; "" without one. */
static const char *first_line(struct report *r, const char *dir, const char *name, char *buf,
			      size_t size)
{
	CLEANUP(freep) char *text = read_beside(r, dir, name);

	snprintf(buf, size, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
	return buf;
}

void report_outcome(struct report *r, int exit_code, const char *dir)
{
	char abort[400], end[200], code[256] = "";

	add_notes(r, dir);
	if (exit_code == REPORT_UNDER_WAY) {
		report_warn(r, REPORT_UNDER_WAY_TEXT);
		return;
	}
	first_line(r, dir, RECORD_ABORTS, abort, sizeof(abort));
	first_line(r, dir, RECORD_ENDS, end, sizeof(end));
	if (exit_code > 0)
		snprintf(code, sizeof(code), "the job ended with exit code %d", exit_code);
	else if (exit_code < 0 && end[0])
		snprintf(code, sizeof(code), "the job seems to have failed (%s)", end);
	r->is_empty = !r->n_ops && code[0] && !abort[0] && r->n_warnings == 0 && !r->lost[0];
	if (r->n_ops && code[0])
		report_warn(r, "%s: these figures are of what came before%s%s", code,
			    abort[0] ? "; " : "", abort);
	else if (!r->n_ops && (code[0] || abort[0]))
		report_warn(r, "no op was recorded: %s%s%s%s", code,
			    code[0] ? " before its first op was over" : "",
			    code[0] && abort[0] ? "; " : "", abort);
	else if (!r->n_ops)
		report_warn(
			r,
			"no op was recorded: the job ended before its first op was over, called NCCL not at all, or not "
			"through libnbox.so (one that is linked statically or opened by its path cannot be reached: "
			"see `readelf -d` of what calls it)");
}
