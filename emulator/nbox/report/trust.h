/* What of a run's figures must not be believed, and what to do about it. */
#pragma once

#include "nbox/report/report.h"

/* Adds a warning for each reason not to believe the figures. @rows: of the rank that is looked at,
 * by arrival. */
void report_trust(const struct record *rec, const struct record_op *rows, uint64_t n,
		  struct report *r);
