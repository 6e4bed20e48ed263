/* See gid.h. */
#include "links/rdma/gid.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

#define IPOIB_HARDWARE_BYTES 20 /* flags, number of a queue pair, GID */
#define IPOIB_GID_AT 4

static bool is_ipv4(const union ibv_gid *g)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(g->raw, mapped, sizeof(mapped)) == 0;
}

static bool is_zero(const union ibv_gid *g)
{
	static const union ibv_gid zero;

	return memcmp(g, &zero, sizeof(zero)) == 0;
}

static bool is_link_local(const uint8_t *address)
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

static bool roce_address(const union ibv_gid *g, int family, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	if (is_link_local(g->raw) || is_ipv4(g) != (family == AF_INET))
		return false;
	memset(ret, 0, sizeof(*ret));
	if (family == AF_INET) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, g->raw + 12, 4);
	} else {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, g->raw, 16);
	}
	return true;
}

/* Whether @i is the hardware address of an IPoIB interface, that is up, over the port of @g. */
static bool is_ipoib(const struct ifaddrs *i, const union ibv_gid *g)
{
	const struct sockaddr_ll *hw = (const struct sockaddr_ll *)(const void *)i->ifa_addr;

	/* sll_addr is declared shorter than this one is; getifaddrs() leaves room */
	return hw && hw->sll_family == AF_PACKET && hw->sll_hatype == ARPHRD_INFINIBAND &&
	       hw->sll_halen == IPOIB_HARDWARE_BYTES && i->ifa_flags & IFF_UP && i->ifa_name &&
	       memcmp((const uint8_t *)hw + offsetof(struct sockaddr_ll, sll_addr) + IPOIB_GID_AT,
		      g->raw, sizeof(g->raw)) == 0;
}

static bool take_address(const struct sockaddr *a, int family, struct sockaddr_storage *ret)
{
	if (!a || a->sa_family != family ||
	    (family == AF_INET6 &&
	     is_link_local(((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr)))
		return false;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, a,
	       family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	return true;
}

static bool ipoib_address(const struct verbs *v, const union ibv_gid *g, int family,
			  struct sockaddr_storage *ret)
{
	struct ifaddrs *list, *port, *i;
	bool has = false;

	if (v->getifaddrs(&list))
		return false;
	for (port = list; port && !has; port = port->ifa_next)
		for (i = is_ipoib(port, g) ? list : NULL; i && !has; i = i->ifa_next)
			has = i->ifa_name && strcmp(i->ifa_name, port->ifa_name) == 0 &&
			      take_address(i->ifa_addr, family, ret);
	v->freeifaddrs(list);
	return has;
}

bool rdma_gid_address(const struct verbs *v, uint8_t link_layer, const union ibv_gid *g, int family,
		      struct sockaddr_storage *ret)
{
	if (is_zero(g) || (family != AF_INET && family != AF_INET6))
		return false;
	return link_layer == IBV_LINK_LAYER_INFINIBAND ? ipoib_address(v, g, family, ret)
						       : roce_address(g, family, ret);
}
