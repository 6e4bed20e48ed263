/* Whether a command can be run at all, said before anything is started: its program is looked for as
 * execvp() does, a script's first line is followed to its interpreter, and a Python script that the
 * command names must be there. */
#pragma once

#include "base/err.h"
#include "cli/launch-line.h"

/* @line: what is known of a launcher in @command; its kind may be LAUNCH_NONE.
 * Return: 0; -ENOENT or -EACCES with the sentence. */
int program_check(char *const *command, const struct launch_line *line, struct err *err);
