/* See address.h. The address decides the device. By default the device follows from the peer's
 * address: the port that has the address, or from which the route leads there. Where several
 * devices (rails) have an address in the peer's network, a worker takes the one nearest to its
 * GPU (near.h). NBOX_IB_HCA, NBOX_IB_PORT and NBOX_IB_GID_INDEX choose another device, by its
 * first GID that gives an IP address (gid.h): of the peer's family to connect from; to listen at,
 * IPv4 before global IPv6. */
#include "links/rdma/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/suggest.h"
#include "links/rdma/gid.h"
#include "links/rdma/near.h"
#include "links/rdma/verbs.h"

#define GIDS_MAX 1024
#define DEVICES_TOLD 16
#define RAILS_MAX 32

/* Return: 0; -ENETDOWN: the port is down; -EADDRNOTAVAIL: no GID fits; -ENXIO: no GID fits, on
 * InfiniBand. */
static int search_port(const struct verbs *v, struct ibv_context *ctx, uint8_t port,
		       const struct rdma_options *o, int family, struct sockaddr_storage *ret)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int i, last;

	memset(&attr, 0, sizeof(attr));
	if (v->query_port(ctx, port, (struct _compat_ibv_port_attr *)(void *)&attr) ||
	    attr.state != IBV_PORT_ACTIVE)
		return -ENETDOWN;
	last = attr.gid_tbl_len < GIDS_MAX ? attr.gid_tbl_len : GIDS_MAX;
	for (i = 0; i < last; i++) {
		if (o->gid_index >= 0 && i != o->gid_index)
			continue;
		if (!v->query_gid(ctx, port, i, &gid) &&
		    rdma_gid_address(v, attr.link_layer, &gid, family, ret))
			return 0;
	}
	return attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? -ENXIO : -EADDRNOTAVAIL;
}

static int search_device(const struct verbs *v, struct ibv_device *dev,
			 const struct rdma_options *o, int family, struct sockaddr_storage *ret)
{
	struct ibv_context *ctx = v->open_device(dev);
	struct ibv_device_attr attr;
	int r = -EADDRNOTAVAIL, found;

	if (!ctx)
		return errno ? -errno : -ENODEV;
	if (!v->query_device(ctx, &attr))
		for (uint32_t p = 1; p <= attr.phys_port_cnt && r; p++) {
			if (o->port && p != o->port)
				continue;
			found = search_port(v, ctx, (uint8_t)p, o, family, ret);
			if (found == 0 || r == -EADDRNOTAVAIL || found == -ENXIO)
				r = found;
		}
	v->close_device(ctx);
	return r;
}

static int unknown_device(const struct verbs *v, struct ibv_device **list, const char *name,
			  struct err *err)
{
	const char *names[DEVICES_TOLD] = {NULL}, *near;
	char text[256] = "";
	size_t n = 0, used = 0;

	for (; list[n] && n < DEVICES_TOLD; n++) {
		names[n] = v->get_device_name(list[n]);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.24s", n ? ", " : "",
					 names[n]);
		if (used >= sizeof(text))
			break;
	}
	near = n < DEVICES_TOLD ? suggest(name, names, n) : NULL;
	if (near)
		return err_set(err, ENODEV,
			       "NBOX_IB_HCA: there is no device '%s'; did you mean '%s'?", name,
			       near);
	return err_set(err, ENODEV, "NBOX_IB_HCA: there is no device '%s'; there are: %s", name,
		       n ? text : "none");
}

static int search(const struct rdma_options *o, int family, struct sockaddr_storage *ret,
		  struct err *err)
{
	int r = -ENODEV, i, n = 0;
	struct ibv_device **list;
	const struct verbs *v;
	bool is_known = false;

	r = verbs_get(&v, err);
	if (r)
		return r;
	list = v->get_device_list(&n);
	if (!list)
		return err_set(err, errno, "no list of RDMA devices: %s", strerror(errno));
	r = -EADDRNOTAVAIL;
	for (i = 0; i < n && r; i++) {
		if (o->hca[0] && strcmp(o->hca, v->get_device_name(list[i])) != 0)
			continue;
		is_known = true;
		r = search_device(v, list[i], o, family, ret);
	}
	if (r && !is_known && o->hca[0])
		r = unknown_device(v, list, o->hca, err);
	else if (r && !n)
		r = err_set(err, ENODEV,
			    "there is no RDMA device (that a provider of libibverbs knows); "
			    "`nbox doctor` looks closer");
	else if (r)
		r = err_set(
			err, -r,
			"no %s address on device %s (NBOX_IB_HCA, NBOX_IB_PORT, NBOX_IB_GID_INDEX): "
			"%s; `nbox doctor` lists ports and GIDs",
			family == AF_INET ? "IPv4" : "IPv6", o->hca[0] ? o->hca : "(any)",
			r == -ENETDOWN ? "the port is down"
			: r == -ENXIO ? "the port is InfiniBand, and no interface of IPoIB over it "
					"(such as ib0) is up with an address"
				      : "no GID fits");
	v->free_device_list(list);
	return r;
}

/* --- the nearest ----------------------------------------------------------------------- */

struct rails {
	struct sockaddr_storage own[RAILS_MAX]; /* of this host, in the network of the target */
	size_t n_own;
	const char *names[RAILS_MAX]; /* devices that have one of these; borrowed from the device
					 list */
	struct sockaddr_storage at[RAILS_MAX];
	size_t n;
};

/* The bytes of the address; @a and all that it is compared with are of one family. */
static const uint8_t *address_bytes(const struct sockaddr *a, size_t *ret_n)
{
	*ret_n = a->sa_family == AF_INET ? 4 : 16;
	return a->sa_family == AF_INET
		       ? (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
		       : (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)
				 ->sin6_addr;
}

static bool is_in_network(const struct sockaddr *a, const struct sockaddr *mask,
			  const struct sockaddr *b)
{
	size_t n;
	const uint8_t *x = address_bytes(a, &n), *y = address_bytes(b, &n);
	/* the kernel leaves a mask's family out at times */
	const uint8_t *m = mask->sa_family == a->sa_family ? address_bytes(mask, &n) : NULL;

	for (size_t i = 0; m && i < n; i++)
		if ((x[i] & m[i]) != (y[i] & m[i]))
			return false;
	return m;
}

static bool is_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	size_t n;
	const uint8_t *x = address_bytes(a, &n), *y = address_bytes(b, &n);

	return memcmp(x, y, n) == 0;
}

/* Own addresses in the network of @to. None when @to is an address of this host: then the route
 * decides, since the rails of one host need not reach each other. */
static void find_own(const struct verbs *v, const struct sockaddr *to, struct rails *rails)
{
	struct ifaddrs *list, *i;

	if (v->getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != to->sa_family)
			continue;
		if (is_same_address(i->ifa_addr, to)) {
			rails->n_own = 0;
			break;
		}
		if (i->ifa_netmask && i->ifa_flags & IFF_UP && rails->n_own < RAILS_MAX &&
		    is_in_network(i->ifa_addr, i->ifa_netmask, to))
			memcpy(&rails->own[rails->n_own++], i->ifa_addr,
			       to->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							: sizeof(struct sockaddr_in6));
	}
	v->freeifaddrs(list);
}

/* Return: whether an active port has one of the own addresses; which. */
static bool port_has(const struct verbs *v, struct ibv_context *ctx, uint8_t port, int family,
		     const struct rails *rails, struct sockaddr_storage *ret)
{
	struct ibv_port_attr attr;
	struct sockaddr_storage at;
	union ibv_gid gid;
	int i, last;

	memset(&attr, 0, sizeof(attr));
	if (v->query_port(ctx, port, (struct _compat_ibv_port_attr *)(void *)&attr) ||
	    attr.state != IBV_PORT_ACTIVE)
		return false;
	last = attr.gid_tbl_len < GIDS_MAX ? attr.gid_tbl_len : GIDS_MAX;
	for (i = 0; i < last; i++) {
		if (v->query_gid(ctx, port, i, &gid) ||
		    !rdma_gid_address(v, attr.link_layer, &gid, family, &at))
			continue;
		for (size_t k = 0; k < rails->n_own; k++)
			if (is_same_address((const struct sockaddr *)&rails->own[k],
					    (const struct sockaddr *)&at)) {
				*ret = at;
				return true;
			}
	}
	return false;
}

static void add_rail(const struct verbs *v, struct ibv_device *dev, int family, struct rails *rails)
{
	struct ibv_context *ctx = rails->n < RAILS_MAX ? v->open_device(dev) : NULL;
	struct ibv_device_attr attr;
	bool has = false;

	if (!ctx)
		return;
	if (!v->query_device(ctx, &attr))
		for (uint32_t p = 1; p <= attr.phys_port_cnt && !has; p++)
			has = port_has(v, ctx, (uint8_t)p, family, rails, &rails->at[rails->n]);
	v->close_device(ctx);
	if (has)
		rails->names[rails->n++] = v->get_device_name(dev);
}

static void choose_rail(const struct rails *rails, const char *pci, struct sockaddr_storage *ret)
{
	size_t best;
	int r;

	if (rails->n < 2)
		return; /* nothing to choose */
	r = rdma_near_choose(rdma_near_sysfs, pci, rails->names, rails->n, &best);
	if (r) {
		log_debug(
			"rdma: %zu devices (%s, %s%s) are in the network of nboxd, and %s to GPU %s: "
			"the route decides; NBOX_IB_HCA chooses",
			rails->n, rails->names[0], rails->names[1], rails->n > 2 ? ", ..." : "",
			r == RDMA_NEAR_EQUAL ? "several are equally near"
					     : "it is not known which is nearest",
			pci);
		return;
	}
	*ret = rails->at[best];
	log_debug("rdma: from device %s, of %zu in the network of nboxd the nearest to GPU %s; "
		  "NBOX_IB_HCA chooses another",
		  rails->names[best], rails->n, pci);
}

/* @ret stays as it is when the route shall decide, also after an error: the connection attempt will
 * name what is wrong. */
static void search_nearest(const char *pci, const struct sockaddr *to, struct sockaddr_storage *ret)
{
	CLEANUP(freep) struct rails *rails = calloc(1, sizeof(*rails));
	struct ibv_device **list;
	const struct verbs *v;
	int n = 0;

	if (!rails || (to->sa_family != AF_INET && to->sa_family != AF_INET6) ||
	    verbs_get(&v, NULL))
		return;
	find_own(v, to, rails);
	list = rails->n_own > 1 ? v->get_device_list(&n) : NULL;
	if (!list)
		return;
	for (int i = 0; i < n; i++)
		add_rail(v, list[i], to->sa_family, rails);
	choose_rail(rails, pci, ret);
	v->free_device_list(list);
}

int rdma_source_address(const struct rdma_options *o, const struct sockaddr *to,
			struct sockaddr_storage *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	if (!o->hca[0] && !o->port && o->gid_index < 0) {
		if (rdma_near_gpu())
			search_nearest(rdma_near_gpu(), to, ret);
		return 0;
	}
	return search(o, to->sa_family, ret, err);
}

int rdma_own_address(const struct rdma_options *o, struct sockaddr_storage *ret, struct err *err)
{
	int r = search(o, AF_INET, ret, err);

	return r == -EADDRNOTAVAIL || r == -ENXIO ? search(o, AF_INET6, ret, err) : r;
}
