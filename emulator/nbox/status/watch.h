/* nbox status --watch: asks a running nboxd again each second. */
#pragma once

#include "nbox/status/client.h"

enum watch_form { WATCH_TEXT, WATCH_JSON };

/* A live view on a terminal; a line a second elsewhere, or of WATCH_JSON each answer. @c has an
 * answer. @dir: the results directory, whose record has the iterations; "": not known. Return: the
 * exit code: 0 also when the run has ended, or the user has had enough. */
int watch_run(struct status_client *c, const char *dir, enum watch_form form);
