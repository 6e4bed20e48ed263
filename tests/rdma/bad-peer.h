/* A peer that breaks the rules of verbs, on a real device: one of our rdma links whose calls go
 * through a table that does something else than the link asked for. The frames and the protocol
 * above stay right, so the trick can come at any moment of a conversation. */
#pragma once

#include <stdbool.h>

enum bad_trick {
	BAD_NONE,
	BAD_MAGIC,       /* its hello is none */
	BAD_VERSION,     /* it speaks version 99 */
	BAD_RKEY,        /* the key of its ring is another */
	BAD_NO_RECEIVES, /* it never posts one */
	BAD_NO_CONFIRM,  /* is accepted, and never says that it is there */
};

/* All links of this process go through the table from now on. Return: false: no verbs. */
bool bad_peer_init(void);
/* Of connections that are made from now on, until the next call. */
void bad_peer_set(enum bad_trick t);
/* The queue pairs made since bad_peer_set() answer nobody any more; nobody is told. */
void bad_peer_fall_silent(void);
