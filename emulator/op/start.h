/* What can be played now, and whose end is known. */
#pragma once

#include "op/table.h"

/* @post has arrived: plays its op, or the point-to-point calls that have found their pairs, and
 * releases the posts whose ends are known (struct ops_sink). Return: 0; negative errno with the
 * sentence: the communicator is of no use any more. */
int op_start(struct post *post, struct err *err);
