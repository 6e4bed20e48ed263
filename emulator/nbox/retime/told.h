/* What a re-timed run says of its counts. */
#pragma once

#include "nbox/report/report.h"
#include "replay/counts.h"

/* Into the summary: what was fitted or declared; as warnings: what was assumed or extrapolated, and
 * what was declared of no op. @declared: NULL: the world has its size. */
void told_counts(const struct counts_told *told, const struct sizes *sizes,
		 const struct declared_counts *declared, struct report *ret);
