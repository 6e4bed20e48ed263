/* Whether a command is a script that starts the job's ranks itself, as far as its text shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Does the shell or Python script that @command runs start ranks (a launcher at the beginning of a
 * command, mp.spawn)? Return: false; true with where and by what in @ret_what, "train.sh:3:
 * torchrun", and the option of nbox run for it in *@ret_option. */
bool script_starts_ranks(char *const *command, char *ret_what, size_t size,
			 const char **ret_option);
