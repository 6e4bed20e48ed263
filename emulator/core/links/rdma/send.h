/* Inside links/rdma: the sending side of a link; see send.c. */
#pragma once

#include "links/rdma/state.h"

ssize_t rdma_post(struct link *base, struct link_seg *s, int n_seg); /* see struct link_ops */
uint64_t rdma_done(struct link *base);
int rdma_register(struct link *base, const void *p, uint64_t bytes, struct link_memory **ret,
		  struct err *err);
void rdma_unregister(struct link *base, struct link_memory *m);
int rdma_lend_gpu(struct link *base, const struct link_gpu *gpu, uint64_t bytes, struct err *err);
/* Reads @from->bytes to @dst in @m. Return: 0: they are there when RDMA_WR_READ completes; negative
 * errno: the link has ended. */
int rdma_read_offer(struct rdma_link *l, const struct rdma_offer *from, struct link_memory *m,
		    void *dst);
bool rdma_has_queue_room(const struct rdma_qp *q);
/* Says how far we have read, if the peer may need to know. */
void rdma_tell(struct rdma_link *l);
/* A WRITE of nothing: completes when the peer's device has answered all before it. */
void rdma_probe(struct rdma_link *l, struct rdma_qp *q);
