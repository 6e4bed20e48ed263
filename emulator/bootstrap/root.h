/* The root: real ranks check in, and are told who is next in the ring, which is always us. */
#pragma once

#include "bootstrap/comm.h"

/* @c, at root c->root of c->comm, has said its hello. */
void root_begin(struct bootstrap_conn *c);
