/* The fabric as a fabric file: all of it, nothing left to a default. */
#pragma once

#include <stdio.h>

#include "fabric/fabric.h"

/* What yaml-read.h reads is the same fabric again. The caller looks at ferror(). */
void fabric_write(const struct fabric *f, FILE *to);
