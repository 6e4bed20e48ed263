/* Prints all that is known about the time of one op. */
#pragma once

#include <stdio.h>

#include "nbox/ask/ask.h"

/* @size: as in nccl-tests. @dtype: enum coll_dtype. Return: 0; negative errno with the sentence. */
int explain_print(struct ask *a, enum coll_kind kind, uint64_t size, uint32_t dtype, bool is_json,
		  FILE *to, struct err *err);
