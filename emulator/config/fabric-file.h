/* The file that a configuration names as its fabric. */
#pragma once

#include "config/config.h"

#define FABRIC_FILE_FOLDER \
	"config-fabric" /* of a run's folder: where the copy lies, beside config.yaml */

/* The fabric's file as the option names it; NULL: there is none, such as with a preset. Borrowed.
 */
const char *fabric_file(const struct config *c);
/* A relative name that the cluster file @path has is meant from its folder. Return: 0; -ENOMEM. */
int fabric_file_beside(struct config *c, const char *path);
/* Copies it into the folder of the run @dir. Return: 0, also where there is none; a negative errno.
 */
int fabric_file_keep(const struct config *c, const char *dir);
