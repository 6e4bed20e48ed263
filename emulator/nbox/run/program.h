/* Whether a command can be run at all, said before anything is started: its program is looked for
 * as execvp() does, a script's first line is followed to its interpreter, and a Python script that
 * the command names must be there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "nbox/run/launcher-line.h"

/* @line: what is known of a launcher in @command; its kind may be LAUNCH_NONE.
 * Return: 0; -ENOENT or -EACCES with the sentence. */
int program_check(char *const *command, const struct launch_line *line, struct err *err);
/* Does the shell or Python script that @command runs start ranks itself, as far as its text shows
 * (a launcher at the beginning of a command, mp.spawn)? Return: false; true with where and by what
 * in @ret_what, "train.sh:3: torchrun", and the option of nbox run for it in *@ret_option. */
bool program_starts_ranks(char *const *command, char *ret_what, size_t size,
			  const char **ret_option);
