/* Ids of NCCL's communicators of the virtual size: nboxd makes them, and is their bootstrap's root
 * and the other end of their traffic from then on. */
#pragma once

#include "nboxd/comm/comm.h"

struct full;

/* struct comms has it: all members of @c, which has several ranks, have promised to go into the
 * real init. @full: struct full. Return: 0; negative errno with the sentence: @c cannot be. */
int full_make_id(void *full, struct comm *c, uint8_t ret_id[WIRE_ID_BYTES], struct err *err);
/* It is aborted or freed: its connections are hung up. One without an id is allowed. */
void full_end_comm(struct comm *c);
