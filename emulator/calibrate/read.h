/* Reads measured times from what other programs write: nccl-tests' text and JSON (-J), NCCL
 * Inspector's JSON, PARAM's text, CSV. The text itself says which it is. Strict: what is not
 * understood is an error with its place. All fuzzed. */
#pragma once

#include "base/err.h"
#include "calibrate/hints.h"
#include "calibrate/sample.h"

/* @file: its name, for sentences. Adds to @ret. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int read_text(const char *file, const char *text, size_t len, const struct read_hints *hints,
	      struct samples *ret, struct err *err);
