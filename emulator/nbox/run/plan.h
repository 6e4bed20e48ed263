/* What a run would do, printed for --dry-run. */
#pragma once

#include "nbox/run/run.h"

void plan_print(const struct run *run); /* after run_prepare() */
