/* What why_make() found, as text and as JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/why/found.h"

/* "of 84.2 ms an iteration, 62.1 are computation, ...": one sentence without its full stop. Return:
 * @buf. */
char *why_headline(const struct why *w, char *buf, size_t size);
/* The largest part of the critical path, streams and what-ifs together: @of_ranks: of "computation"
 * and "the host"; else of the others, such as "AllReduce of dp (8 ranks)" or "waits for rank 17".
 * Return: @buf; "": there is none. */
char *why_largest(const struct why *w, bool of_ranks, char *buf, size_t size);
/* "computation on stream 3", "AllReduce of world, by the model". Return: @buf. */
char *why_part_text(const struct why *w, const struct why_part *p, char *buf, size_t size);
void why_print(const struct why *w, FILE *to);
json_t *why_json(const struct why *w); /* the caller's reference; NULL: no memory */
