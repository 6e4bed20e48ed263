/* Reads a JSON file of a results directory. Another user may have made it, so its size is bounded.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"

void json_freep(json_t **o); /* for CLEANUP() */
/* *ret_json is the caller's reference. Return: 0; -ENOENT; -EINVAL it is no JSON, or no file;
 * another negative errno; each with the sentence. */
int json_file_read(const char *path, json_t **ret_json, struct err *err);
/* The text of @key, plain; "": there is none. */
void json_text(const json_t *o, const char *key, char *buf, size_t size);
