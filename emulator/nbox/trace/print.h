/* What nbox trace says, as text and as JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/trace/stat.h"
#include "trace/clocks.h"

void print_stat(const struct stat *s, FILE *to);
json_t *json_stat(const struct stat *s); /* NULL: no memory */
/* What takes another time in an iteration of @b. */
void print_diff(const struct stat *a, const struct stat *b, FILE *to);
json_t *json_diff(const struct stat *a, const struct stat *b);
/* @reversed: messages that are received before they are sent, before and behind the alignment. */
void print_clocks(const struct trace *t, const struct clocks *c, const uint64_t reversed[2],
		  FILE *to);
json_t *json_clocks(const struct trace *t, const struct clocks *c, const uint64_t reversed[2]);
