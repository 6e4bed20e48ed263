/* What the readers of read.h share: a text line by line, its words, and what a sample must have. */
#pragma once

#include "base/err.h"
#include "calibrate/hints.h"
#include "calibrate/sample.h"

#define READ_LINE_MAX 4096
#define READ_WORDS_MAX 64

struct reader {
	const char *file;
	const char *p, *end; /* what is left */
	unsigned long line;
	const struct read_hints *hints;
	struct samples *to;
	struct err *err;
};

/* "file:line: ..." Return: -EINVAL. */
int reader_wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next line, without its end. Return: 1; 0: there is none; -EINVAL. */
int reader_line(struct reader *r, char line[READ_LINE_MAX]);
/* Cuts @line into words at blanks, at most READ_WORDS_MAX. Return: their number. */
size_t reader_words(char *line, char *words[READ_WORDS_MAX]);
/* Finite and positive numbers. Return: 0; -EINVAL with the sentence: @what is none. */
int reader_number(struct reader *r, const char *what, const char *word, double *ret);
/* Fills what the hints say and the text did not (kind -1, ranks or nodes 0), and adds it, unless
 * another kind is wanted. Return: 0; -EINVAL; -ENOMEM. */
int reader_add(struct reader *r, int kind, struct sample s);

/* One for each sort of text. Return: 0; -EINVAL; -ENOMEM. */
int read_nccl_tests(struct reader *r);
int read_json(struct reader *r); /* nccl-tests' and NCCL Inspector's */
int read_param(struct reader *r);
int read_csv(struct reader *r);
