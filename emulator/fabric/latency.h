/* The least latency between ranks of an op, whichever NICs of their domains and whichever ranks
 * between them are used. */
#pragma once

#include "fabric/census.h"

/* Of the NICs of a domain that are near to ranks of the op. @direction: LINK_OUT, LINK_IN. */
double latency_door(const struct fabric *f, const struct census *c, uint32_t domain,
		    unsigned direction);
double latency_least(const struct fabric *f, const struct census *c, uint32_t src, uint32_t dst);
