/* The figures of a run as metrics (base/metric.h). */
#pragma once

#include <stdio.h>

#include "nbox/report/report.h"

/* @rep: of @rec. */
void metrics_print(const struct record *rec, const struct report *rep, FILE *to);
