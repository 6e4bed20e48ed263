/* What-ifs that a run did not meet. */
#pragma once

#include "op/ops.h"

/* @tell: called with a sentence for each, of the ramp of a scenario once for all. When the run is
 * over. */
void ops_tell_unmet(const struct ops *ops, void (*tell)(void *ctx, const char *sentence),
		    void *ctx);
