/* The rule for when ops start and end; another rule replaces these two functions. Today's: a
 * collective is played when all its members have arrived, point-to-point calls when both their ends
 * have; all posts of a run start with the last of them, virtual ranks included, and end together. A
 * virtual rank arrives when the real rank that it copies does (topology/template.h; a virtual peer
 * of point-to-point calls: when the rank that calls it does), plus what decorators (slow, jitter)
 * say of it: a slow rank needs more of what its own template computed, not of what any other real
 * rank did. */
#pragma once

#include "nboxd/op/table.h"

/* Whether a run can be played now that a post of @op has arrived. Return: 1, for
 * run_start() (*ret_ready: of point-to-point calls; else NULL); 0; negative errno with the
 * sentence. */
int rule_is_ready(struct op *op, struct pair_post **ret_ready, struct err *err);
/**
 * rule_apply - start_ns, end_ns and late_ns of @run, start and end of each of its posts
 * @run: its posts have arrived, and its timing is known
 *
 * Return: 0; negative errno with the sentence.
 */
int rule_apply(struct run *run, struct err *err);
