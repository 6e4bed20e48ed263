/* The summary of a run: for people on a terminal, for programs as summary.json. */
#pragma once

#include "nbox/report/report.h"

void report_print(const struct report *r, FILE *to);
/* summary.json. @exit_code: of the job; -1: not known, and left out. Return: 0 or negative errno
 * with the sentence. */
int report_write_json(const struct report *r, int exit_code, const char *path, struct err *err);
