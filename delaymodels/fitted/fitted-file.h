/* The file of a fitted model, and what it answers. A line is `key = value`, a comment (#) or a
 * curve's head `[kind]`; `nbox fit` writes it (emulator/calibrate/write.c). Numbers are bare, their
 * units stand in the keys. */
#ifndef FITTED_FILE_H
#define FITTED_FILE_H

#include "curve.h"

#define FITTED_VERSION 1
#define FITTED_UNIT "wire bytes"
#define FITTED_PROTOS "any|ll|ll128|simple" /* any, then enum nbox_proto */
#define FITTED_SENTENCE 320
#define FITTED_SOURCE 200
#define FITTED_BYTES_MAX (16u << 20)

struct fitted {
	char source[FITTED_SOURCE], date[16];
	struct curve *curves; /* owned */
	size_t n;
};

/* @file: for sentences. Return: 0; -1 with the sentence, @ret is as it was. */
int fitted_parse(const char *file, const char *text, size_t len, struct fitted *ret,
		 char sentence[FITTED_SENTENCE]);
void fitted_deinit(struct fitted *f);

/* What lies outside the measurements. */
struct fitted_beyond {
	double ranks, bytes; /* how many times; 1: inside */
};

/* How long an op of nccl-tests' size @size takes. Between two numbers of ranks that were measured,
 * between their times; outside them the nearest one's curve, at the op's own wire bytes. Return: 0;
 * 1: there is no curve of that kind. */
int fitted_ns(const struct fitted *f, uint32_t kind, uint32_t n_ranks, uint32_t n_nodes,
	      double size, double *ret_ns, struct fitted_beyond *ret_beyond);

#endif
