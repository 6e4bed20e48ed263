/* The page of one run: what its summary says, drawn. */
#pragma once

#include "nbox/draw/svg.h"
#include "nbox/page/doc.h"
#include "nbox/page/loads.h"
#include "nbox/page/view.h"
#include "nbox/report/load.h"

struct page_run {
	const struct loaded_run *run; /* all borrowed */
	const struct report *rep;
	const struct view *view;
	const struct fabric *fabric; /* NULL: the run has none */
	const struct loads *loads;   /* of it */
};

/* Return: 0; -ENOMEM. */
int run_page_write(const struct page_run *p, struct doc *d);
/* The main picture: where the time of one iteration goes. */
void run_page_draw(const struct page_run *p, enum svg_place place, FILE *to);
