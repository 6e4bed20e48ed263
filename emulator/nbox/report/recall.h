/* What only `nbox run` knew of a run, read from the run's summary.json. */
#pragma once

#include "nbox/report/report.h"

/* Adds the summary's warnings, classes, the device and the network. @path: a summary.json; one that
 * is not there adds nothing. */
void report_recall(struct report *r, const char *path);
