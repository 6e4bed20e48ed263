/* The part of a run's page about the times of its iterations. */
#pragma once

#include "nbox/page/doc.h"
#include "nbox/page/view.h"

/* Return: 0; -ENOMEM. */
int run_iterations_write(const struct report *rep, const struct view *v, struct doc *d);
