/* All-gathers over the ring of a communicator, for each of its real ranks.
 *
 * A rank gives its own record in the first frame to its next, and in the others what it got from
 * its prev; only the first is of interest. When all real ranks have given theirs, each gets those
 * of all others, made as they are sent: nothing but the real ranks' records is kept. From
 * NCCL 2.28.7 on half of the frames go the other way round, to prev and from next.
 *
 * NCCL sends no data of a step before it has all sizes of it, so the first size goes out as soon as
 * a rank's own has come. */
#pragma once

#include "bootstrap/comm.h"

/* What a connection of the ring does with bytes; as in struct conn_kind. */
void gather_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n);
void gather_more(struct bootstrap_conn *c);
/* The rank has closed @c. Return: 0, nothing was under way there; -1: the communicator has failed.
 */
int gather_leave(struct bootstrap_conn *c, int error);
/* "all-gather 2 (peer)". Return: @buf. */
char *gather_name(const struct bootstrap_comm *comm, const struct gather *g, char *buf,
		  size_t size);
