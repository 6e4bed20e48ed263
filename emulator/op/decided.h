/* What collectives were decided by: NCCL's own word where it told, else the scheduler's rules. */
#pragma once

#include "op/table.h"

/* What NCCL took, as @post's member tells, is @post's op's from here on; the first member's word
 * counts. Return: 0; negative errno with the sentence. */
int decided_take(struct post *post, struct err *err);
/* The run's op is timed: counts it, and warns of the first that NCCL decided otherwise. */
void decided_count(const struct run *run);
/* What NCCL is to take, by a record of decisions, where one was given. Return: whether @m has the
 * answer; not where @c has another shape than @m asks of, or the record says nothing of @c: records
 * are of communicators with as many ranks on each node. */
bool decided_ask(const struct comm *c, struct wire_tune *m);
/* "NCCL itself (118 of 120 collectives), 118 of them as h100.txt says; else NCCL 2.28.9, the
 * job's"; "": the model is no scheduler, or was not asked. Return: @buf. */
char *decided_print(const struct ops *ops, char *buf, size_t size);
