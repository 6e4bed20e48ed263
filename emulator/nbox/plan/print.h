/* A plan as a table on the terminal. */
#pragma once

#include "nbox/plan/plan.h"

void plan_print_table(const struct plan *p, FILE *to);
