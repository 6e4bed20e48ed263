/* Tables of embeddings, as a file lists them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shard/reuse.h"

#define TABLES_MAX (1u << 20)

struct shard_table {
	double rows, width; /* floats of a row */
	double lookups;     /* of a bag, in the mean */
	struct reuse reuse; /* n_rows 0: not known */
};

/* CSV: the first line names the columns: E (rows), D (width), L (lookups of a bag); perhaps rf1 to
 * rf17, the shares of reuse.h. Lines that begin with # are comments. @text: is cut up. *ret: the
 * caller's, by free(). Return: 0; -EINVAL with the sentence; -ENOMEM. */
int tables_read(const char *file, char *text, struct shard_table **ret, uint32_t *ret_n,
		struct err *err);
/* As a card keeps it. */
double table_bytes(const struct shard_table *t);
