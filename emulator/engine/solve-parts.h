/* What solve() and solve_p2p() share: the model's answer for the whole op, and the extras of the
 * what-ifs. Both first make the *raw* times, without extras. */
#pragma once

#include "engine/price.h"
#include "engine/timing.h"

/* Lets the what-ifs add their extras to raw times. No message is later than the op's
 * end: when the op is shortened, its messages come earlier in proportion. */
int solve_finish(struct price *p, const struct border *border, struct timing *t, struct err *err);

/* Asks the base model for the whole op. Return: 0; 1 no answer; negative. */
int solve_from_op(struct price *p, struct timing *t, struct err *err);
/* The model says @whole_ns for the whole op; @t is what its messages say. The op takes @whole_ns
 * and the difference that what-ifs make in @t. */
void solve_on_top(double whole_ns, const struct border *border, struct timing *t);
/* The sentence, when nobody answers. Return: -EINVAL. */
int solve_no_answer(const struct price *p, struct err *err);
