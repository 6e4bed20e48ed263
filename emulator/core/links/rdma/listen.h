/* Inside links/, and for nbox doctor: how endpoint.c gets rdma links, without the headers of
 * libibverbs. */
#pragma once

#include <sys/socket.h>

#include "links/address.h"
#include "links/endpoint.h"
#include "links/rdma/options.h"

struct rdma_listener;

/* @gpu: whose memory bodies are received into; NULL: the host's. */
int rdma_connect_link(const struct link_addr *a, uint64_t due_ns, const struct link_gpu *gpu,
		      const struct link_events *ev, void *owner, struct link **ret,
		      struct err *err);
/* @text: the address with the real port. */
int rdma_listener_open(const struct link_addr *a, struct rdma_listener **ret, char *text,
		       size_t size, struct err *err);
void rdma_listener_close(struct rdma_listener *l);
int rdma_listener_fd(const struct rdma_listener *l);
/* As link_accept(). The links share the listener's thread. */
int rdma_accept_link(struct rdma_listener *l, const struct link_events *ev, void *owner,
		     struct link **ret, struct err *err);

/* rdma-address.c: the address to connect from, when the options choose a device, or one of
 * several is nearest to the GPU (rdma-near.h); family 0: the system chooses. Return: 0; negative
 * errno with the sentence. */
int rdma_source_address(const struct rdma_options *o, const struct sockaddr *to,
			struct sockaddr_storage *ret, struct err *err);
/* The address of a port to listen at: of the chosen device, else of the first port that is
 * active. */
int rdma_own_address(const struct rdma_options *o, struct sockaddr_storage *ret, struct err *err);
