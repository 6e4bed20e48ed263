/* Inside links/rdma: the receiving side of a link; see receive.c. */
#pragma once

#include "links/rdma/state.h"

ssize_t rdma_read(struct link *l, void *dst, size_t n); /* see struct link_ops */
/* A failed completion only marks the link broken: a peer that leaves in good order causes one, too.
 * rdma.c reads the events of the connection before it decides. */
void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc);
