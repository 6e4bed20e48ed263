/* A path as the dynamic linker can take it. The linker divides LD_PRELOAD at spaces and colons and
 * LD_LIBRARY_PATH at colons and semicolons, and knows no quotes. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define LOADER_PRELOAD " \t\n:"
#define LOADER_LIBRARY_PATH ":;"

/* Gives @path itself. Where it holds one of @dividers, another name of the same file is given:
 * below /proc, that of a descriptor of this process, which stays open. That name holds as long as
 * this process lives, and leaves nothing behind. Return: 0; negative errno with the sentence. */
int loader_path(const char *path, const char *dividers, char *ret, size_t size, struct err *err);
