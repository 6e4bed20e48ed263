/* How long kernels take where no GPU runs them: what NBOX_HOST_KERNEL_TIME and `nbox run --gpu`
 * say.
 *
 *   20us       each kernel takes that
 *   h100       a card: each kernel goes by its rule (rule.h)
 *   FILE       a table, a row a line: a pattern of names, blanks, and a time or a card
 *
 *       # what a trace of our job said
 *       matmul bf16 *                 h100
 *       *elementwise_kernel<*         3us
 *       *                             5us
 *
 * In a pattern * stands for any text, ? for a character, and \ takes the meaning of the character
 * behind it away. The first row that fits decides, and the last one must be *. A pattern may have
 * blanks, since names of kernels have; a line that begins with # is a comment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kernels/rule.h"

struct kernel_row {
	char *pattern;           /* owned */
	const struct card *card; /* NULL: @ns */
	double ns;               /* below a minute */
};

struct kernel_table {
	struct kernel_row *rows; /* owned */
	size_t n, capacity;
	char what[256]; /* how long kernels take, in words, for the summary of a run */
};

/* Return: 0; -EINVAL, -EFBIG, -ENOMEM or of a file, with the sentence. */
int kernel_table_open(const char *spec, struct kernel_table **ret, struct err *err);
/* It is neither a time nor a card. */
bool kernel_table_is_file(const char *spec);
/* Of a file's text; @file is for sentences. @text ends with '\0' and is changed. */
int kernel_table_parse(const char *file, char *text, size_t n, struct kernel_table **ret,
		       struct err *err);
void kernel_table_free(struct kernel_table *table);
static inline void kernel_table_freep(struct kernel_table **table)
{
	kernel_table_free(*table);
}

/* The row of the kernel @name, which may have a second name (demangled) or NULL. */
const struct kernel_row *kernel_table_find(const struct kernel_table *table, const char *name,
					   const char *second);

bool kernel_pattern_fits(const char *pattern, const char *name);
/* The pattern that fits @name and nothing else, but for characters that a line of a table cannot
 * have: ? stands for those. @buf has twice the length of @name, and two more. Return: @buf. */
char *kernel_pattern_escape(const char *name, char *buf);
