/* The summary of a run: for people on a terminal, for programs as summary.json. */
#pragma once

#include "nbox/report/report.h"

struct json_t;

void report_print(const struct report *r, FILE *to);
/* summary.json. @exit_code: of the job; -1: not known, and left out. Return: the caller's
 * reference; NULL without memory. */
struct json_t *report_json(const struct report *r, int exit_code);
/* Return: 0 or negative errno with the sentence. */
int report_write_json(const struct report *r, int exit_code, const char *path, struct err *err);
