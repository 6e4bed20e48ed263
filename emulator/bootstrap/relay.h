/* A message from a real rank to another: passed on, both ways, as it comes. */
#pragma once

#include "bootstrap/comm.h"

/* The head of @c has come, from member c->member; it is for @to. */
void relay_begin(struct bootstrap_conn *c, const struct member *to);
