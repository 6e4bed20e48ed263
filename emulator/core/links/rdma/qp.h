/* Inside links/rdma: the memory and the queue pairs of a link; see qp.c. */
#pragma once

#include "links/rdma/state.h"

int rdma_link_setup(struct rdma_link *l, struct err *err);  /* id->verbs is known */
int rdma_link_to_rts(struct rdma_link *l, struct err *err); /* peer is known */
void rdma_link_unset(struct rdma_link *l);
void rdma_link_hello(const struct rdma_link *l, struct rdma_hello *ret);
/* Gives the peer one more receive, into @slot. */
int rdma_repost(struct rdma_link *l, uint16_t slot);
