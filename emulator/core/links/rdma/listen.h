/* Inside links/: the listener of rdma links; see listen.c. No headers of libibverbs. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct link;
struct link_addr;
struct link_events;
struct rdma_listener;

/* @text: the address with the real port. */
int rdma_listener_open(const struct link_addr *a, struct rdma_listener **ret, char *text,
		       size_t size, struct err *err);
void rdma_listener_close(struct rdma_listener *l);
int rdma_listener_fd(const struct rdma_listener *l);
/* As link_accept(); its LINK_LISTENS_AGAIN is RDMA_LISTENS_AGAIN here. The links share the
 * listener's thread. */
enum { RDMA_LISTENS_AGAIN = 1 };
int rdma_accept_link(struct rdma_listener *l, const struct link_events *ev, void *owner,
		     struct link **ret, struct err *err);
