/* Figures of the papers beside ours. A program for each verb prints a row an item: paper, item,
 * expected, got, difference in percent, ok; it is a test, and what ./scripts/bench papers prints.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *papers_name;
static int papers_wrong;

/* @paper: of the rows to come */
static inline void papers_open(const char *paper)
{
	papers_name = paper;
}

/* Where 0 is expected, @tolerance_pct is that of @got itself, times 100. NAN: nothing is expected,
 * the row says what there is. */
static inline void papers_row(const char *item, double expected, double got, double tolerance_pct)
{
	double off = 100 * (got - expected) / (expected != 0 ? fabs(expected) : 1);
	bool is_ok = isnan(expected) || fabs(off) <= tolerance_pct;

	printf("%s\t%s\t%.10g\t%.10g\t%.3g\t%s\n", papers_name, item, expected, got, off,
	       is_ok ? "yes" : "NO");
	papers_wrong += !is_ok;
}

/* What must hold, such as an order. */
static inline void papers_holds(const char *item, bool is_so)
{
	papers_row(item, 1, is_so, 0);
}

/* Return: what main() returns. */
static inline int papers_close(void)
{
	if (papers_wrong)
		fprintf(stderr, "%d rows are off\n", papers_wrong);
	return papers_wrong ? 1 : 0;
}
