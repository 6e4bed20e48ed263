/* Messages from rank to rank: a connection each, which begins with the sender's rank and a tag. */
#pragma once

#include "bootstrap/comm.h"

/* @c, at a port for messages of c->comm, has said its hello. */
void message_begin(struct bootstrap_conn *c);
