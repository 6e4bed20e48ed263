/* summary.json of a run that no `nbox run` looks after: nboxd's workers started it. */
#pragma once

#include "base/err.h"

/* Has the `nbox` beside this nboxd write @dir/summary.json from the record, which must be closed; waits for it.
 * Return: 0; negative errno with the sentence. */
int summary_write(const char *dir, struct err *err);
