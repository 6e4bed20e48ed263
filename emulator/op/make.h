/* A run: its posts, how long they take, and when they are over at each rank. */
#pragma once

#include "op/table.h"

/* Plays all of @op, a collective, or the point-to-point calls of @ready and their other ends: finds
 * their times and ends. The communicator owns the run. Return: 0; negative errno with the sentence:
 * the communicator is of no use any more. */
int run_make(struct op *op, struct pair_post *ready, struct run **ret, struct err *err);
