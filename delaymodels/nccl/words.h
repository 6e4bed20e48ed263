/* NCCL's lists of algorithms or protocols: "ring,tree;allreduce:^tree". */
#ifndef NCCL_WORDS_H
#define NCCL_WORDS_H

#include "setting.h"

/* Number of the word at @p of @n bytes among @words ("a|b|c"), case aside; -1: not among them. */
int words_find(const char *words, const char *p, size_t n);

#define ALGO_WORDS "tree|ring|collnetdirect|collnetchain|nvls|nvlstree|pat"
#define PROTO_WORDS "ll|ll128|simple"
#define KIND_WORDS "allreduce|allgather|reducescatter|broadcast|reduce" /* enum nbox_op_kind */

/* Sets @allowed, N_COSTED rows of @n_words, as @text of the variable or parameter @key says.
 * Return: 0; -1 with the sentence. */
int words_apply(const struct nbox_host *host, const char *key, const char *text, const char *words,
		size_t n_words, uint8_t *allowed);

#endif
