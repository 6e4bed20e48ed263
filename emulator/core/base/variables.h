/* The names of all variables that begin with NBOX_: of options, of the shim, of the stand-ins, of
 * tests and scripts. nbox and nboxd refuse a run with any other such variable, and the shim warns
 * of it, because a mistyped variable would have no effect. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Checks @environment (as environ): each name that begins with NBOX_ is known, and each variable
 * that only workers read has a valid value. Without the second check the user would hear of it only
 * when the job runs. Return: 0; -EINVAL with the sentence. */
int variable_check(char *const *environment, struct err *err);
/* The first of @environment (as environ) that begins with NBOX_, has a value and is not known; or
 * NULL. */
const char *variable_first_unknown(char *const *environment);
/* Into @buf: "NBOX_MODLE is unknown; did you mean 'NBOX_MODEL'?", for "NBOX_MODLE=ring". Return:
 * @buf. */
char *variable_unknown_text(const char *entry, char *buf, size_t size);
