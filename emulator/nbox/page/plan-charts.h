/* The pictures of a plan's page. */
#pragma once

#include "nbox/page/doc.h"
#include "nbox/page/plan-view.h"

/* The main one: the rate over the nodes. @v: with points. */
void plan_charts_draw_rate(const struct plan_view *v, enum svg_place place, FILE *to);
/* All of them, with their keys. */
void plan_charts_write(const struct plan_view *v, struct doc *d);
