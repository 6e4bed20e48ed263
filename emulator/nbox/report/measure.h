/* A run's figures, computed from the rows of its record: ops by kind, steps, times, lateness. */
#pragma once

#include "nbox/report/report.h"

/* Return: 0; -ENOMEM. A record without rows gives zeros. */
int report_make(const struct record *rec, struct report *ret);

/* What stands in for exposed time where the record has no points. Virtual time in communication
 * that was not provably overlapped with compute: between two arrivals of a rank, when every earlier
 * op was over before the later arrival, the time from the earlier arrival to the last end counts;
 * when some op was still under way at the later arrival, the rank was computing meanwhile and
 * nothing counts. An upper bound: what a job computes after its last op of a burst is not seen.
 * Rows sorted by arrival. */
double report_exposed(const struct record_op *rows, uint64_t n);
