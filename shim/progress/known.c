/* See known.h. */
#include "shim/progress/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shim/progress/session.h"

static struct comm *list; /* the progress thread's; a reference each */

struct send_note {
	struct note note;
	struct comm *comm; /* reference; NULL: of no communicator */
	enum wire_type type;
	size_t bytes;
	char body[];
};

void known_add(struct comm *c)
{
	c->next = list;
	list = c;
}

struct comm *known_first(void)
{
	return list;
}

struct comm *known_find(uint32_t number, uint32_t rank)
{
	for (struct comm *c = list; c; c = c->next)
		if (c->number == number && c->rank == rank)
			return c;
	return NULL;
}

static void run_send(struct note *n)
{
	CLEANUP(freep) struct send_note *s = container_of(n, struct send_note, note);
	CLEANUP(comm_unrefp) struct comm *c = s->comm;
	const void *body = s->bytes ? s->body : NULL;

	if (!c) {
		session_send(s->type, 0, 0, 0, body, s->bytes);
		return;
	}
	/* not checked in yet, or freed by another thread: nboxd would not know the communicator */
	if (known_find(c->number, c->rank) != c)
		return;
	session_send(s->type, c->number, c->rank, 0, body, s->bytes);
	if (s->type == WIRE_COMM_FREE) {
		comm_list_remove(&list, c);
		comm_unref(c);
	}
}

int known_send(struct comm *c, enum wire_type type, const void *body, size_t bytes)
{
	struct send_note *s;

	if (note_is_child())
		return 0;
	s = calloc(1, sizeof(*s) + bytes);
	if (!s)
		return -ENOMEM;
	s->note.run = run_send;
	s->comm = c ? comm_ref(c) : NULL;
	s->type = type;
	s->bytes = bytes;
	if (bytes)
		memcpy(s->body, body, bytes);
	note_post(&s->note, NOTE_WAKE);
	return 0;
}

int known_abort(struct comm *c, int code, const char *text)
{
	struct wire_text body = {.code = code};

	snprintf(body.text, sizeof(body.text), "%s", text);
	return known_send(c, WIRE_ABORT, &body, sizeof(body));
}
