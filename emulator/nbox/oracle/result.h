/* What NCCL said of its worlds, as the file that the model nccl reads. */
#pragma once

#include "nbox/oracle/host.h"

/* The ring or tree of channel @c inside the node: its ranks as they are visited, from the one that
 * the node is entered by. Return: how many; 0: the log does not tell it. */
uint32_t oracle_ring_of(const struct nccl_log *l, uint32_t c, uint32_t n_gpus, uint16_t *ret);
uint32_t oracle_tree_of(const struct nccl_log *l, uint32_t c, uint32_t n_gpus, uint16_t *ret);

/* @gpus, @made: texts for the file's head. *ret is the caller's, by decisions_deinit().
 * Return: 0; negative errno with the sentence. */
int oracle_result(const struct oracle_nccl *n, const char *gpus, const char *made,
		  const struct oracle_world *worlds, size_t n_worlds, struct decisions *ret,
		  struct err *err);
