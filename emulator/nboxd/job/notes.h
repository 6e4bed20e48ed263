/* What the summary is told of the run, in text files of the results directory. Workers say
 * sentences (WIRE_NOTE): each goes once into notes.txt, or into versions.txt if it begins with
 * WIRE_NOTE_VERSION. nboxd itself says why communicators were aborted (aborts.txt), and which
 * workers failed or vanished (ends.txt). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct config;
struct record_writer;

#define NOTES_MAX 16 /* different ones of a run */

enum notes_file { NOTES_ABORTS, NOTES_ENDS, NOTES_FILES };

struct notes {
	const struct config *config;  /* borrowed; without a results directory nothing is kept */
	struct record_writer *record; /* borrowed; learns what could not be written */
	char *texts[NOTES_MAX];       /* owned: what workers have said */
	uint32_t n, n_lines[NOTES_FILES];
	bool is_stopping; /* what ends now does so for want of nboxd: no line of that */
};

/* The worker called @who says @body, a checked WIRE_NOTE. */
void notes_take(struct notes *n, const char *who, const void *body);
/* The same of a sentence. */
void notes_say(struct notes *n, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A line of nboxd's own; of each file the first 100 are kept. */
void notes_add(struct notes *n, enum notes_file file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void notes_deinit(struct notes *n);
