/* Changes the environment of this process. Children of nbox call it between fork() and exec. */
#pragma once

/* All: Return 0; -ENOMEM. */
int env_set(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts @value in front of a colon-separated list. */
int env_prepend(const char *name, const char *value);
