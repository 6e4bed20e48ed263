/* Reads the record of a run (record.h), also of one that grows or was cut off: what is whole
 * counts. Everything that a report uses as an index or a size is checked, and each row before it
 * takes memory. Rows of a kind that this nbox does not know, and fields that it does not know, are
 * passed over. Fuzzed. */
#pragma once

#include "base/err.h"
#include "engine/record-rows.h"

/* The header alone. Return: 0; negative errno with the sentence. */
int record_load_header(const char *path, struct record_header *ret, struct err *err);
int record_load(const char *path, struct record *ret, struct err *err);
/* The same from memory, for tests. */
int record_parse(const void *data, uint64_t n, struct record *ret, struct err *err);
