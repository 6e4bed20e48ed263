/* Draws the rows of a table: times and their bounds over bytes, both axes logarithmic. */
#pragma once

#include <stdio.h>

#include "nbox/perf/rows.h"

/* In characters, lines that begin with '#'. Of fewer than three sizes it draws nothing. */
void perf_draw_text(const struct perf_rows *r, FILE *to);
/* As SVG, bus bandwidths, too. @title: plain text. Return: 0; -ENOMEM. */
int perf_draw_svg(const struct perf_rows *r, const char *title, FILE *to);
