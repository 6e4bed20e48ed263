/* NCCL's lists of algorithms or protocols: "ring,tree;allreduce:^tree". */
#ifndef NCCL_WORDS_H
#define NCCL_WORDS_H

#include "nbox-delaymodel.h"
#include "tables.h"

#define N_COSTED (NBOX_REDUCE + 1) /* kinds that the cost model knows: AllReduce to Reduce */

enum allowed { ALLOWED_NO, ALLOWED_YES, ALLOWED_BY_RULE };

/* Number of the word at @p of @n bytes among @words ("a|b|c"), case aside; -1: not among them. */
int words_find(const char *words, const char *p, size_t n);
/* The word of number @i, which is among @words. */
const char *words_at(const char *words, uint32_t i, int *ret_len);

#define ALGO_WORDS "tree|ring|collnetdirect|collnetchain|nvls|nvlstree|pat"
#define PROTO_WORDS "ll|ll128|simple"
#define KIND_WORDS "allreduce|allgather|reducescatter|broadcast|reduce" /* enum nbox_op_kind */

/* Sets @allowed, N_COSTED rows of @n_words, as @text of the variable or parameter @key says.
 * Return: 0; -1 with the sentence. */
int words_apply(const struct nbox_host *host, const char *key, const char *text, const char *words,
		size_t n_words, uint8_t *allowed);

#endif
