/* Inside links/: one rdma link is connected or accepted; see connect.c. No headers of libibverbs.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct link;
struct link_addr;
struct link_events;
struct link_gpu;
struct rdma_hub;
struct rdma_request;

/* @gpu: receives bodies into its memory; NULL: into the host's. */
int rdma_connect_link(const struct link_addr *a, uint64_t due_ns, const struct link_gpu *gpu,
		      const struct link_events *ev, void *owner, struct link **ret,
		      struct err *err);
/* Accepts or refuses @q, and takes its id. Return: 0; negative errno with the sentence: refused,
 * and the peer was told why. */
int rdma_accept_request(struct rdma_hub *h, struct rdma_request *q, const struct link_events *ev,
			void *owner, struct link **ret, struct err *err);

/* The links, for their hub. */
extern const struct rdma_hub_sink rdma_links;
