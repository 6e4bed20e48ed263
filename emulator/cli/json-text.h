/* Texts of unknown origin for JSON, which is UTF-8: paths, a user's words and those of workers need not be. */
#pragma once

#include <jansson.h>

/* @text, 1 KiB of it at most where it is no UTF-8: then question marks take the place of all that is not ASCII. The
 * caller's. Return: NULL: out of memory. */
json_t *json_text(const char *text);
