/* Inside mesh/: the randomised greedy planner. */
#pragma once

#include "mesh/turn.h"

/* Rounds: of 100 random choices of tasks that can go at once the largest is taken, the one whose
 * senders are then most evenly loaded of several. @t->turns has room for @t->n. Return: 0; -ENOMEM.
 */
int turns_greedy(const struct turns_task *tasks, const struct turns_effort *effort,
		 struct turns *t);
