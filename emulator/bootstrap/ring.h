/* The ring of the bootstrap, as a real rank sees it: we are its next and its prev. */
#pragma once

#include "bootstrap/comm.h"

/* Makes a port where @m finds its next. Once it has come there, we connect to m->ring_address as
 * its prev. Return: 0; -1: @comm has failed. */
int ring_expect(struct bootstrap_comm *comm, struct member *m,
		uint8_t ret_address[NCCL_ADDRESS_BYTES]);
