/* Which rows of which tables a batch looks up, as a file lists them. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "shard/reuse.h"

struct reuse_of_table {
	uint32_t batch, table;
	struct reuse reuse;
};

/* A line a bag: its batch, its table, then the rows, blanks or commas between; lines that begin
 * with # are comments. @text: is cut up. *ret: by batch and table; the caller's, by free(). Return:
 * 0; -EINVAL with the sentence; -ENOMEM. */
int indices_read(const char *file, char *text, struct reuse_of_table **ret, uint32_t *ret_n,
		 struct err *err);
