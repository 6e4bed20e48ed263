/* See known.h. */
#include "shim/progress/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shim/progress/session.h"

static struct comm *list; /* the progress thread's; a reference each */

struct send_note {
	struct note note;
	struct comm *comm; /* reference */
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

	/* not checked in yet, or freed by another thread: nboxd would not know the communicator */
	if (known_find(c->number, c->rank) != c)
		return;
	session_send(s->type, c->number, c->rank, 0, s->bytes ? s->body : NULL, s->bytes);
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
	s->comm = comm_ref(c);
	s->type = type;
	s->bytes = bytes;
	if (bytes)
		memcpy(s->body, body, bytes);
	note_post(&s->note, NOTE_WAKE);
	return 0;
}
