/* See notes.h. */
#include "nboxd/job/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plain.h"
#include "nboxd/job/results.h"
#include "wire/wire.h"

#define LINES_MAX 100

static void append(struct notes *n, const char *file, const char *text)
{
	int r = n->config->out ? results_append(n->config, file, text) : 0;

	if (r < 0)
		record_lose_note(n->record, r);
}

void notes_say(struct notes *n, const char *who, const char *fmt, ...)
{
	static const size_t version = sizeof(WIRE_NOTE_VERSION) - 1;
	char text[WIRE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	plain_text(text);
	log_info("%s says: %s", who, text);
	for (uint32_t i = 0; i < n->n; i++)
		if (!strcmp(n->texts[i], text))
			return;
	if (n->n == NOTES_MAX || !(n->texts[n->n] = strdup(text)))
		return;
	n->n++;
	if (strncmp(text, WIRE_NOTE_VERSION, version) == 0)
		append(n, "versions.txt", text + version);
	else
		append(n, RECORD_NOTES, text);
}

void notes_take(struct notes *n, const char *who, const void *body)
{
	struct wire_text m;

	memcpy(&m, body, sizeof(m));
	notes_say(n, who, "%s", m.text);
}

void notes_add(struct notes *n, enum notes_file file, const char *fmt, ...)
{
	static const char *const names[] = {RECORD_ABORTS, RECORD_ENDS};
	char text[1024];
	va_list ap;

	if (!n->config->out || n->is_stopping || n->n_lines[file] == LINES_MAX)
		return;
	n->n_lines[file]++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	append(n, names[file], plain_text(text));
}

void notes_deinit(struct notes *n)
{
	while (n->n)
		free(n->texts[--n->n]);
}
