/* Transports that NCCL sets up with virtual ranks: it tells what it has, and hears what they have.
 */
#pragma once

#include "bootstrap/comm.h"

size_t setup_bytes_max(const struct bootstrap_comm *comm);
/* Rank @m tells @bytes[0..n) to the virtual rank that port (@is_near) and tag say. @comm may fail.
 */
void setup_message(struct bootstrap_comm *comm, struct member *m, bool is_near, int32_t tag,
		   const uint8_t *bytes, uint32_t n);
