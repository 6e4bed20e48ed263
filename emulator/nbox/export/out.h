/* Files of exports: packed where their name says so. */
#pragma once

#include <stdio.h>

#include "base/err.h"

/* For writing, by gzip where @path ends with ".gz"; "-": standard output. *ret is the caller's, by
 * file_finish() (base/file.h). Return: 0; negative errno with the sentence. */
int out_create(const char *path, FILE **ret, struct err *err);
