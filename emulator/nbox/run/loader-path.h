/* A path as the dynamic linker can take it: it divides LD_PRELOAD at spaces and colons,
 * LD_LIBRARY_PATH at colons and semicolons, and nothing can quote them. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define LOADER_PRELOAD " \t\n:"
#define LOADER_LIBRARY_PATH ":;"

/* @path itself, or where one of @dividers is in it another name of the same file or folder: that of
 * a descriptor of this process, which stays open, below /proc. It holds as long as this process
 * lives, and leaves nothing behind. Return: 0; negative errno with the sentence. */
int loader_path(const char *path, const char *dividers, char *ret, size_t size, struct err *err);
