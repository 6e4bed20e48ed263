/* Whether a command can be run at all, said before anything is started. The program is looked for
 * as execvp() does. A script's first line is followed to its interpreter. A Python script that the
 * command names must be there. */
#pragma once

#include <limits.h>

#include "base/err.h"
#include "nbox/run/launcher-line.h"

/* @line: what is known of a launcher in @command; its kind may be LAUNCHER_NONE.
 * Return: 0; -ENOENT or -EACCES with the sentence. */
int program_check(char *const *command, const struct launcher_line *line, struct err *err);

/* The file that execvp() would run for @name. Return: @buf, or NULL. */
const char *program_find(const char *name, char buf[PATH_MAX]);
/* The word of "python3 -u train.py ..." that is a script; NULL: there is none, or none that is
 * known for sure. */
const char *program_python_script(char *const *command);
