/* How PyTorch calls collectives, types and ranks. */
#pragma once

#include <stdint.h>

#include "trace/json-value.h"

enum { TORCH_SEND = 1000, TORCH_RECV };

/* @name: of "Collective name"; NULL: not said. @kernel: NCCL's kernel. Return: enum coll_kind;
 * TORCH_SEND, TORCH_RECV; -1: another one's. */
int torch_collective(const char *name, const char *kernel);
/* Bytes of an element; 0: unknown. */
uint32_t torch_type_bytes(const char *name);
/* The ranks of "[0, 1, 7]", or of a list. *ret is the caller's. Return: how many; 0: not all of
 * them are said, or it is no such list; -ENOMEM. */
int torch_ranks(const struct json_value *value, uint32_t **ret);
