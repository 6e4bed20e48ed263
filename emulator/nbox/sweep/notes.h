/* Marks of points and what they mean: a letter a sentence, in the order in which they come.
 * Sentences that differ in numbers alone have one letter. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOTES_MAX 26

struct note {
	char *text; /* owned; as it came first */
	size_t n;   /* points that have it */
};

struct notes {
	struct note list[NOTES_MAX]; /* a, b, c, ... */
	size_t n;
	size_t n_dropped; /* sentences beyond the last letter */
};

/* Marks a point, once a sentence: @marks has a bit a letter. Return: 0; -ENOMEM. */
int notes_add(struct notes *n, const char *text, uint32_t *marks);
/* "abd". @buf: NOTES_MAX + 1 bytes. Return: @buf. */
char *notes_text(uint32_t marks, char *buf);
void notes_deinit(struct notes *n);
