/* Inside links/rdma: the sending side of a link; see send.c. */
#pragma once

#include "links/rdma/state.h"

ssize_t rdma_post(struct link *base, struct link_seg *s, int n_seg); /* see struct link_ops */
uint64_t rdma_done(struct link *base);
int rdma_lend_gpu(struct link *base, const struct link_gpu *gpu, uint64_t bytes, struct err *err);
bool rdma_has_queue_room(const struct rdma_qp *q);
/* Says how far we have read, if the peer may need to know. */
void rdma_tell(struct rdma_link *l);
/* A WRITE of nothing: completes when the peer's device has answered all before it. */
void rdma_probe(struct rdma_link *l, struct rdma_qp *q);
