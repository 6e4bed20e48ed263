/* Inside links/rdma: the receiving side of a link; see receive.c. */
#pragma once

#include "links/rdma/state.h"

ssize_t rdma_read(struct link *l, void *dst, size_t n); /* see struct link_ops */
/* Errors wait: an end in good order looks like one until its event has been read. */
void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc);
