/* A run in which NCCL itself runs at the virtual size: what can be said of it before it starts. */
#pragma once

#include "nbox/run/run.h"

/* Nothing where the run is another. Sets @run's nccl and nccl_warning. Return: 0; -EINVAL with the
 * sentence: NCCL is the stand-in, or one that cannot run so. */
int full_mode_check(struct run *run, struct err *err);
