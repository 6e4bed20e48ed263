/* Whether a run was as expected (scenario/expect.h). */
#pragma once

#include "config/config.h"
#include "nbox/report/report.h"
#include "scenario/expect.h"

/* Adds what became of @n expectations; @text: one as the user wrote it, by its number. @exit_code:
 * of the job; -1: not known. */
void report_expect(struct report *r, const struct expect *list, size_t n,
		   const char *(*text)(const void *ctx, size_t i), const void *ctx, int exit_code);
/* Those of a run's configuration; without an exit code none of it is judged. */
void report_expect_of(struct report *r, const struct config *c, int exit_code);
bool report_is_met(const struct report *r);
