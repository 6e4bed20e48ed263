/* Files that somebody else may have made. A pipe or a device under the name of such a file is not
 * opened: opening it can wait for ever, or do something. A link to a file is followed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* For reading. Return: a descriptor; -ENOENT; -EINVAL it is no file; another negative errno; each
 * with the sentence. */
int file_open(const char *path, struct err *err);
/* All of it, with an end ('\0') behind it that is not counted. *ret_text is the caller's, by
 * free(). Return: 0; -EFBIG it has more than @max bytes; as file_open(). */
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err);
/* Of a file that was printed to. Return: 0 all of it was taken; a negative errno, -EIO where that
 * of an earlier print is gone. */
int file_close(FILE *f);
/* Whether @path, of file_create(), is standard output: nothing else may go there. NULL: no. */
bool file_is_stdout(const char *path);
/* For writing; "-": standard output. *ret is the caller's, by file_finish(). Return: 0; negative
 * errno with the sentence. */
int file_create(const char *path, FILE **ret, struct err *err);
/* Closes it. Return: 0 all that was printed was taken; negative errno with the sentence. */
int file_finish(FILE *f, const char *path, struct err *err);
/* The folder of this process's program. Return: 0; negative errno. */
int file_own_folder(char *buf, size_t size);
