/* JSON files: those of results directories, which another user may have made, so that their size is
 * bounded; and what verbs write for --json. */
#pragma once

#include <jansson.h>

#include "base/err.h"

void json_freep(json_t **o); /* for CLEANUP() */
/* *ret_json is the caller's reference. Return: 0; -ENOENT; -EINVAL it is no JSON, or no file;
 * another negative errno; each with the sentence. */
int json_file_read(const char *path, json_t **ret_json, struct err *err);
/* Writes @o, whose reference it takes; NULL: there was no memory for it. @path: "-": standard
 * output. Return: 0; negative errno with the sentence. */
int json_file_write(json_t *o, const char *path, struct err *err);
/* The text of @key, plain; "": there is none. */
void json_text(const json_t *o, const char *key, char *buf, size_t size);
