/* Every op, or every point, of a run as CSV: one table says what the columns are, to the reader and
 * to the printer. */
#pragma once

#include <stdio.h>

#include "engine/record-read.h"

/* Return: 0; -ENOMEM, and nothing was printed. */
int csv_print(const struct record *rec, FILE *to);
void csv_print_points(const struct record *rec, FILE *to);
/* A line a column: its name, its unit, what it means. */
void csv_help(FILE *to);
