/* Which of the two ways made a run's numbers: nbox's schedules beside a real NCCL that knows the
 * real ranks alone (gate), or NCCL's own decisions and messages (full). */
#pragma once

#include "nbox/report/report.h"

bool report_is_full(const struct record_header *h);
/* "gate: nbox's decisions and messages". */
const char *report_way(const struct record_header *h);
/* What values of ops mean with nccl full. Return: @buf; "" of a gate's run, whose page says it. */
char *report_values(const struct report *r, char *buf, size_t size);
