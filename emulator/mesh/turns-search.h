/* Inside mesh/: a search through orders and senders. */
#pragma once

#include "mesh/turn.h"

#define TURNS_SEARCH_MAX 1024 /* tasks: of more, or of too many unlike ones, it does nothing */

/* Looks for a plan that ends before @t->end_ns and puts it into @t, whose bound is set. Return: 0;
 * 1: there is none better than the one that @t now has, and that is proven; -ENOMEM. */
int turns_search(const struct turns_task *tasks, const struct turns_effort *effort,
		 enum turns_algo by, struct turns *t);
