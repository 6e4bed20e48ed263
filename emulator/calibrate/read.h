/* Reads measured times from what other programs write: nccl-tests' text and JSON (-J), NCCL
 * Inspector's JSON, PARAM's text, CSV. The text itself says which it is. Strict: what is not
 * understood is an error with its place. All fuzzed. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "calibrate/sample.h"

/* What the user says of a text that does not say it itself. Where it does, kind is the only one
 * that is wanted, and ranks and nodes must be its own. */
struct read_hints {
	int kind;                  /* enum coll_kind; -1 */
	uint32_t n_ranks, n_nodes; /* 0 */
	bool in_place;             /* nccl-tests: the times of the right half */
};

/* @file: its name, for sentences. Adds to @ret. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int read_text(const char *file, const char *text, size_t len, const struct read_hints *hints,
	      struct samples *ret, struct err *err);
