/* nbox fit --fabric: fits the links of a fabric to measured times, says what came of it, and writes
 * the fabric. */
#pragma once

#include "base/err.h"
#include "calibrate/sample.h"

/* @fabric: a preset's name or a file. @source: of the samples, for the file. @out: NULL: nothing is
 * written. @samples: sorted; those without a byte for each rank are left out. Return: 0; negative
 * errno with the sentence. */
int fabric_fit(const char *fabric, struct samples *samples, const char *source, const char *out,
	       struct err *err);
