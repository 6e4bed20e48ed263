/* What collectives were decided by: NCCL's own word where it told, else the scheduler's rules. */
#pragma once

#include "op/table.h"

/* What NCCL took, as @post's member tells, is @post's op's from here on; the first member's word
 * counts. Return: 0; negative errno with the sentence. */
int decided_take(struct post *post, struct err *err);
/* The run's op is timed: counts it, and warns of the first that NCCL decided otherwise. */
void decided_count(const struct run *run);
/* "NCCL itself (118 of 120 collectives); else NCCL 2.28.9, the job's"; "": the model is no
 * scheduler, or was not asked. Return: @buf. */
char *decided_print(const struct ops *ops, char *buf, size_t size);
