/* Draws a fitted model as SVG: for each curve its points, the fit, and how far they are apart. */
#pragma once

#include <stdio.h>

#include "fitted/fitted-file.h"

int plot_svg(const struct fitted *f, FILE *to); /* 0; -ENOMEM */
