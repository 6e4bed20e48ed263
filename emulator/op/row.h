/* What the record says of a post. */
#pragma once

#include "engine/record.h"
#include "op/table.h"

/* All but what its gate and its worker say, its lists, and its place in the order. */
void post_row(const struct post *post, struct record_op *ret);
