/* The name that a misspelt one was meant to be: "unknown key 'modle'; did you mean 'model'?". */
#pragma once

#include <stddef.h>

/* The candidate nearest to @word by edit distance. Return: borrowed; NULL: none is near. */
const char *suggest(const char *word, const char *const *candidates, size_t n);
/* As suggest(). Where no candidate is near, the only one of which @word leaves out letters, or
 * that leaves out letters of @word: "bw" for "bandwidth", "messages" for "msgs". Not for units:
 * "ms" does not mean "minutes". */
const char *suggest_long(const char *word, const char *const *candidates, size_t n);
