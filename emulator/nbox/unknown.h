/* A word of the command line that a subcommand does not know. */
#pragma once

#include <stddef.h>

/* Says so, with the nearest of @known, options with dashes. Return: 2, the exit code. */
int unknown_option(const char *command, const char *word, const char *const *known, size_t n);
