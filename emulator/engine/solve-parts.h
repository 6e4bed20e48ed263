/* Private to solve*.c: the stages of a solution. */
#pragma once

#include "engine/price.h"
#include "engine/solve.h"

/* Raw times: end_ns and model_ns without extras, how, bound_ns, and at[] of the
 * border when they come from messages. */
int solve_raw(const struct sched *s, struct price *p, const struct border *border, int force_sim,
	      struct timing *t, struct err *err);

/* Lets the what-ifs add their extras to raw times. No message is later than the op's
 * end: when the op is shortened, its messages come earlier in proportion. */
int solve_finish(struct price *p, const struct border *border, struct timing *t, struct err *err);

/* Asks the base model for the whole op. Return: 0; 1 no answer; negative. */
int solve_from_op(struct price *p, struct timing *t, struct err *err);
/* @t is what the messages say, and the model says @whole_ns for the whole op: the op takes that,
 * and longer by what the what-ifs change in a run of its messages. */
void solve_on_top(double whole_ns, const struct border *border, struct timing *t);
/* The sentence, when nobody answers. Return: -EINVAL. */
int solve_no_answer(const struct price *p, struct err *err);

/* Room for the release times of the border's in-messages. */
int solve_border_times(struct timing *t, const struct border *b, struct err *err);

/* solve_bound_ns() for a communicator that spans @n_nodes, some members of which
 * share a node, or none. */
double solve_bound_of(const struct sched *s, const struct topology *t, uint32_t n_nodes,
		      bool has_intra);
