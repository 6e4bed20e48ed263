/* What a mistyped name may have been meant to be. */
#pragma once

#include <stddef.h>

/* "; did you mean 'allreduce'?", spelled as in the help; "" when none of @names is near. Return:
 * @buf. */
char *did_you_mean(const char *word, const char *const *names, size_t n, char *buf, size_t size);
