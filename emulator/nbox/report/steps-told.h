/* Steps as the user tells them (--steps) beside those that the record has. */
#pragma once

#include "config/config.h"
#include "nbox/report/report.h"

/* Warns where a step of the one has more ops than one of the other. @r: of @rec, @c of its run.
 * Return: 0; -ENOMEM. */
int report_steps_told(struct report *r, const struct record *rec, const struct config *c);
