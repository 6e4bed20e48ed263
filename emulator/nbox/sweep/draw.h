/* The page and the picture of a sweep: sweep.html, sweep.svg. */
#pragma once

#include "nbox/sweep/write.h"

/* Into the sweep's folder. Return: 0; negative errno with the sentence. */
int sweep_draw(const struct sweep_results *r, struct err *err);
