/* Inside links/rdma: an rdma link as a link; see rdma.c. */
#pragma once

#include "links/rdma/state.h"

int rdma_link_new(struct rdma_hub *h, const struct link_events *ev, void *owner,
		  struct rdma_link **ret);
void rdma_link_free(struct rdma_link *l);
void rdma_on_tick(struct rdma_hub *h); /* as in the sink */
