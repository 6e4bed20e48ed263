/* Inside mesh/: the planners that go through a list of tasks once. */
#pragma once

#include "mesh/turn.h"

/* @t->turns has room for @t->n. TURNS_NAIVE, TURNS_ALPA, TURNS_LB. Return: 0; -ENOMEM. */
int turns_list(const struct turns_task *tasks, enum turns_algo algo, struct turns *t);
