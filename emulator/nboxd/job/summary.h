/* The summary of a run that no `nbox run` looks after: its workers started nboxd, or a person did
 * by hand. */
#pragma once

#include <stdbool.h>

#include "config/config.h"

#define SUMMARY_UNMET 1 /* not all of @c's expectations are met, and the summary says which */

/* Has the `nbox` beside this nboxd write summary.json of @c's results from the record, which must
 * be closed, and print the summary on stderr if @is_printed and NBOX_QUIET is not 1; waits for it.
 * @network: that times come from, which no record has; "": none. Return: 0; SUMMARY_UNMET; negative
 * errno with the sentence. */
int summary_write(const struct config *c, const char *network, bool is_printed, struct err *err);
