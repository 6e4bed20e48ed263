/* A message of a virtual rank to a real one. */
#pragma once

#include "bootstrap/comm.h"

/* Puts a message's head, from rank @from, into the queue of @c. Return: 0; -ENOMEM. */
int send_head(struct bootstrap_conn *c, uint32_t from, int32_t tag);
/* Sends @bytes[0..n). @comm may fail. */
void send_message(struct bootstrap_comm *comm, const struct member *to, uint32_t from, int32_t tag,
		  const void *bytes, uint32_t n);
