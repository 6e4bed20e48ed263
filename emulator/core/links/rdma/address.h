/* Which address an rdma link connects from or is listened at; see address.c. For nbox doctor, too.
 */
#pragma once

#include <sys/socket.h>

#include "base/err.h"
#include "links/rdma/options.h"

/* The address to connect from, when the options choose a device, or one of
 * several is nearest to the GPU (near.h); family 0: the system chooses. Return: 0; negative
 * errno with the sentence. */
int rdma_source_address(const struct rdma_options *o, const struct sockaddr *to,
			struct sockaddr_storage *ret, struct err *err);
/* The address of a port to listen at: of the chosen device, else of the first port that is
 * active. */
int rdma_own_address(const struct rdma_options *o, struct sockaddr_storage *ret, struct err *err);
