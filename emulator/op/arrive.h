/* How ops begin: with the arrival of a member. */
#pragma once

#include "op/table.h"

/* The first arrival @a says what @op, which is new, is. @list: its point-to-point calls, struct
 * wire_p2p, need not be aligned. Return: 0; negative errno with the sentence. */
int op_define(struct op *op, const struct wire_arrive *a, const char *list, struct err *err);
/* Whether both are calls of one op. */
bool op_is_same_call(const struct wire_arrive *a, const struct wire_arrive *b);
/* @post arrives on its timeline; op_start() tells its op. @deps: a->n_deps; @latest, @number: as
 * struct timeline_point has them. Return: 0; negative errno with the sentence. */
int post_arrive(struct post *post, const struct wire_arrive *a, const struct timeline_dep *deps,
		const struct timeline_dep *latest, uint64_t number, struct err *err);
/* A place in a stream, or of the host, at @world_rank. Return: as timelines_point(). */
int ops_point(struct ops *ops, uint32_t world_rank, const struct timeline_point *p,
	      struct timeline_times *ret, struct err *err);
