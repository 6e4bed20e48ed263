/* Writes the file of a fitted model, as fitted/fitted-file.h reads it. */
#pragma once

#include <stdio.h>

#include "fitted/fitted-file.h"

void fitted_write(const struct fitted *f, FILE *to);
