/* What ops wait for, in words: for the status, for warnings that come ever more seldom, for a
 * member that leaves while others wait for it, and for the end of ops that wait too long. */
#pragma once

#include "nboxd/op/live.h"
#include "op/table.h"

/* "AllReduce of 1024 float32 (4 KiB), root 0". Return: @buf. */
char *op_call_text(const struct wire_arrive *a, char *buf, size_t size);
/* Warnings and bounds of waiting ops. Return: when to call again. */
uint64_t op_tick(struct live *live, uint64_t now_ns);
/* Calls @each with a sentence an open op. */
void op_describe_all(const struct comm *c, uint64_t now_ns,
		     void (*each)(void *ctx, const char *sentence), void *ctx);
uint32_t op_n_open(const struct comm *c);
/* What member @i of @c owes the others or itself: an op that is not over, a call that somebody
 * waits for. Return: whether there is any; it is then named in @buf. */
bool op_is_owed(const struct comm *c, size_t i, char *buf, size_t size);
