/* See notes.h. */
#include "nboxd/job/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plain.h"
#include "nboxd/job/results.h"
#include "nboxd/loop/worker.h"
#include "nboxd/server.h"

int notes_on_told(struct worker *w, const void *body)
{
	struct server *s = w->server;
	struct notes *notes = &s->notes;
	char name[WORKER_NAME_MAX];
	int r;
	struct wire_text m;

	memcpy(&m, body, sizeof(m));
	plain_text(m.text);
	log_info("%s says: %s", worker_name(w, name, sizeof(name)), m.text);
	for (uint32_t i = 0; i < notes->n; i++)
		if (!strcmp(notes->texts[i], m.text))
			return 0;
	if (notes->n == NOTES_MAX || !(notes->texts[notes->n] = strdup(m.text)))
		return 0;
	notes->n++;
	if (!s->config->out)
		return 0;
	if (strncmp(m.text, WIRE_NOTE_VERSION, strlen(WIRE_NOTE_VERSION)) == 0)
		r = results_append(s->config, "versions.txt", "%s",
				   m.text + strlen(WIRE_NOTE_VERSION));
	else
		r = results_append(s->config, RECORD_NOTES, "%s", m.text);
	if (r < 0)
		record_lose_note(s->ops.record, r);
	return 0;
}

void notes_add(struct server *s, const char *file, uint32_t *n, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int r;

	if (!s->config->out || s->is_stopping || *n == NOTES_LINES_MAX)
		return;
	++*n;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r = results_append(s->config, file, "%s", plain_text(text));
	if (r < 0)
		record_lose_note(s->ops.record, r);
}

void notes_deinit(struct server *s)
{
	while (s->notes.n)
		free(s->notes.texts[--s->notes.n]);
}
