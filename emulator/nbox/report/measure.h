/* A run's figures, computed from the rows of its record: ops by kind, steps, times, lateness. */
#pragma once

#include "nbox/report/report.h"

/* Return: 0; -ENOMEM. A record without rows gives zeros. */
int report_make(const struct record *rec, struct report *ret);

/* Time in communication that was not provably overlapped with compute: between
 * two arrivals of a rank, when every earlier op was released before the later
 * arrival, the time from the earlier arrival to the last release counts; when
 * some op was still under way at the later arrival, the rank was computing
 * meanwhile and nothing counts. An upper bound: what a job computes after its
 * last op of a burst is not seen. Rows sorted by arrival. */
double report_exposed(const struct record_row *rows, uint64_t n);
