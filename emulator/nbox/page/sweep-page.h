/* The page of several runs that differ in a setting: curves of iteration time over it, with error
 * bands, and a table. It takes plain figures, so that live and re-timed runs look alike. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "nbox/draw/chart.h"
#include "nbox/page/doc.h"

/* All texts are borrowed. Times in ms: of an iteration the median and the quartiles (or whatever
 * the band is, see @band), the others means of an iteration. NAN: not known. */
struct page_point {
	const char *line;    /* points of one name are one curve; NULL: all are */
	const char *setting; /* in words: "5ms" */
	const char *run;     /* its name; NULL: none is kept */
	bool is_dot;         /* as all of its line: dots without a line through them */
	double x;            /* the setting as a number, where the sweep is one of numbers */
	double ms, low_ms, high_ms;
	double exposed_ms, injected_ms, modelled_ms;
	unsigned n_warnings;
};

struct page_sweep {
	const char *title;
	const char
		*axis; /* what x is, with its unit: "delay (ms)"; NULL: settings are no numbers */
	const char *band; /* "the middle half of the iterations" */
	bool is_log;
	const struct page_point *points; /* in the order of the table */
	size_t n;
	const struct chart_mark *marks; /* on the axis */
	size_t n_marks;
};

/* Between doc_begin() and doc_end(): the answer, curves, the table. Return: 0; -ENOMEM. */
int sweep_page_write(const struct page_sweep *s, struct doc *d);
/* The main picture: iteration time over the setting. Return: 0; -ENOMEM. */
int sweep_page_draw(const struct page_sweep *s, enum svg_place place, FILE *to);
