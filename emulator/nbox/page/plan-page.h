/* The page of a plan (nbox plan), from its plan.json: the choice, curves with bands, the table,
 * what was assumed. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "nbox/page/doc.h"

/* @command: as it was typed, or "". Return: 0; -ENOMEM; -EINVAL with the sentence: that is no plan.
 */
int plan_page_write(json_t *plan, const char *command, struct doc *d, struct err *err);
/* The main picture: the rate over the nodes. Return: as above. */
int plan_page_draw(json_t *plan, enum svg_place place, FILE *to, struct err *err);
