/* What the summary is told of the run, in text files of the results directory. Workers say
 * sentences (WIRE_NOTE): each goes once into notes.txt, or into versions.txt if it begins with
 * WIRE_NOTE_VERSION. nboxd itself says why communicators were aborted (aborts.txt), and which
 * workers failed or vanished (ends.txt). */
#pragma once

#include <stdint.h>

struct server;
struct worker;

#define NOTES_MAX 16 /* different ones of a run */
#define NOTES_LINES_MAX 100

struct notes {
	char *texts[NOTES_MAX]; /* owned */
	uint32_t n;
};

/* The frame's body, checked. Return: 0. */
int notes_on_told(struct worker *w, const void *body);
/* nboxd's own line for @file; @n counts the file's lines, of which the first NOTES_LINES_MAX are
 * written. Does nothing without a results directory, and while nboxd stops. */
void notes_add(struct server *s, const char *file, uint32_t *n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void notes_deinit(struct server *s);
