/* How the job of a run ended. */
#pragma once

#include "nbox/report/report.h"

/* Adds what workers had to say, and the warning that says how the job ended, or why no op was
 * recorded. @exit_code: -1: not known; REPORT_UNDER_WAY. @dir: the results directory, where nboxd
 * says what was aborted; NULL: not known. */
void report_outcome(struct report *r, int exit_code, const char *dir);
