/* How ops begin: with the arrival of a member. */
#pragma once

#include "op/table.h"

/* The first arrival @a says what @op, which is new, is. @list: its point-to-point calls, struct
 * wire_p2p, need not be aligned. Return: 0; negative errno with the sentence. */
int op_define(struct op *op, const struct wire_arrive *a, const char *list, struct err *err);
/* Whether both are calls of one op. */
bool op_is_same_call(const struct wire_arrive *a, const struct wire_arrive *b);
/* @post arrives at its op: on its timeline, too. @deps: struct wire_dep, a->n_deps of them, need
 * not be aligned. Return: 0; negative errno with the sentence. */
int post_arrive(struct post *post, const struct wire_arrive *a, const char *deps, struct err *err);
/* A place in a stream, or of the host, at @world_rank. Return: as post_arrive(). */
int ops_point(struct ops *ops, uint32_t world_rank, const struct wire_point *p, const char *deps,
	      struct timeline_times *ret, struct err *err);
