/* What a fit says of itself. */
#pragma once

#include <stdio.h>

#include "calibrate/fit.h"

/* "AllReduce, 16 ranks on 2 nodes" Return: @buf. */
char *fit_name(const struct curve *c, char *buf, size_t size);
/* "20.0 us + bytes / 66.7 GB/s" Return: @buf. */
char *fit_parameters(const struct curve *c, char *buf, size_t size);
/* A block: the range, the forms' errors at what was held out, the parameters of the one that was
 * taken, and its residuals: how far it is from each point. */
void fit_print(const struct curve *c, const struct fit_scores *scores, FILE *to);
