/* The rule for when ops start and end, in virtual time. Today's: all posts of a run start with the
 * last of them, virtual ranks' included, and end together. A virtual rank arrives when the real
 * rank that it copies does (topology/template.h; a virtual peer of point-to-point calls: when the
 * rank does that calls it), plus what decorators (slow, jitter) say of it: a slow rank needs more
 * of what its own template computed, not of what any other real rank did. */
#pragma once

#include "nboxd/op/table.h"

/**
 * rule_apply - start_ns, end_ns and late_ns of @run, start and end of each of its posts
 * @run: its posts have arrived, and its timing is known
 *
 * Return: 0; negative errno with the sentence.
 */
int rule_apply(struct run *run, struct err *err);
