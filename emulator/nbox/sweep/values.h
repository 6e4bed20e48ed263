/* The values that one text stands for: lists and ranges.
 *
 *   2,8,32          each of them
 *   0,1,2,5,10ms    a number without a unit has that of the last
 *   8..1024:x2      8, 16, 32, ... 1024; what is beyond the end is left out
 *   0..10ms:+2ms    0ms, 2ms, ... 10ms; also ":2ms", and without a step in steps of one
 *   none|a:b=1,c=2  with a bar, commas belong to the values
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define VALUES_MAX 10000

struct values {
	char **list; /* owned, and its texts */
	size_t n;
};

/* @text: @len bytes. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int values_parse(const char *text, size_t len, struct values *ret, struct err *err);
int values_add(struct values *v, const char *text); /* 0 or -ENOMEM */
void values_deinit(struct values *v);

/* A value as a number on an axis: times in ms, rates in Gbit/s, sizes in bytes.
 * @ret_unit: "ms", "Gbit/s", "bytes" or "". Return: 0; -EINVAL: it is none. */
int value_number(const char *text, double *ret, const char **ret_unit);
bool values_equal(const char *a, const char *b); /* as numbers, where both are */
