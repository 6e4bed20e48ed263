/* The table of kernels (kernels/table.h) that a trace makes. */
#pragma once

#include <stdio.h>

#include "nbox/kernels/launches.h"

/* A row a name, with the median of its launches; the kernels of one operator that multiplies
 * matrices of known sizes are one launch, whose row has the product's name. The rows of most time
 * come first, the last one is for all other kernels. @file: where it came from, for the heading.
 * Sorts the launches. Return: 0; -ENOMEM. Whether @to took it says file_close(). */
int kernels_write(struct launches *trace, const char *file, FILE *to);
