/* The text to learn: the contents of several files one after another, as numbers of characters. */
#pragma once

#include <stddef.h>

struct text {
	size_t n;
	unsigned char *chars; /* 0 .. n_chars-1 */
	int n_chars;          /* different ones */
};

/* Reads all files that match the shell patterns, in the patterns' and then the names' order; links
 * are not followed, so that no text comes twice. Return: 0, or -1 after a line to stderr. */
int text_load(struct text *text, char *const *patterns, size_t n_patterns);
void text_free(struct text *text);
