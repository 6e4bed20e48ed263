/* Inside links/, and for nbox doctor: the IP address that a GID of a port stands for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "links/rdma/verbs.h"

/* An address of @family (AF_INET, AF_INET6) that a socket can bind to. On RoCE the GID is the
 * address, unless it is link-local. On InfiniBand a GID is the subnet's prefix and the port's
 * number, no IP address: there *ret is the first address of the IPoIB interface that is up over
 * that port; its hardware address ends with the GID (RFC 4391, 9.1.1). Any thread. Return: whether
 * there is one. */
bool rdma_gid_address(const struct verbs *v, uint8_t link_layer, const union ibv_gid *g, int family,
		      struct sockaddr_storage *ret);
