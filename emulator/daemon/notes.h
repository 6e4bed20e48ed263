/* What workers have to say of the run for its summary (WIRE_NOTE): each sentence once, into notes.txt of the
 * results directory, or into versions.txt what begins with WIRE_NOTE_VERSION. */
#pragma once

#include <stdint.h>

struct server;
struct worker;

#define NOTES_MAX 16 /* different ones of a run */

struct notes {
	char *texts[NOTES_MAX]; /* owned */
	uint32_t n;
};

/* The frame's body, checked. Return: 0. */
int notes_on_told(struct worker *w, const void *body);
void notes_deinit(struct server *s);
