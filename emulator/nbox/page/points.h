/* Several runs as points of a sweep: which setting differs between them, and whether it is a
 * number. */
#pragma once

#include "nbox/page/sweep-page.h"
#include "nbox/report/compare.h"

struct points {
	struct page_point *list; /* owned; texts are borrowed from @settings and the sides */
	char (*settings)[128];   /* owned */
	char axis[128];          /* "": settings are no numbers */
};

/* @sides: @n of them, borrowed. Return: 0; -ENOMEM. */
int points_make(const struct compare_side *sides, size_t n, struct points *ret);
void points_deinit(struct points *p);
