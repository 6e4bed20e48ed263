/* Files that a configuration names: its fabric's, and those of the model and of links. The folder
 * of a run keeps a copy of each beside its config.yaml, in config-fabric/, config-model/ and
 * config-links/, so that it may be moved. */
#pragma once

#include "config/config.h"

/* Where in the option's text such a file is named; NULL: nowhere. Borrowed. *ret_n: its bytes. */
const char *kept_file(const struct config *c, enum option_id id, size_t *ret_n);
/* Relative names that the cluster file @path has are meant from its folder. Return: 0; -ENOMEM. */
int kept_files_beside(struct config *c, const char *path);
/* Copies them into the folder of the run @dir. Return: 0, also where there is none; a negative
 * errno.
 */
int kept_files_keep(const struct config *c, const char *dir);
/* The option's text with the copy's name, from the folder of the run. Return: @buf. */
char *kept_file_text(const struct config *c, enum option_id id, char *buf, size_t size);
/* The option's text for people: a copy has the name of what it was made of. Return: @buf. */
char *kept_file_shown(const struct config *c, enum option_id id, char *buf, size_t size);
