/* Which device an rdma link uses. By itself that follows from the address: the device
 * whose port has it, or from which it is reached. NBOX_IB_HCA, NBOX_IB_PORT and
 * NBOX_IB_GID_INDEX choose another one, by the address to connect from: that of the
 * first GID that fits, IPv4 before global IPv6. Link-local GIDs are never chosen. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "links/rdma-listen.h"
#include "links/verbs.h"

#define GIDS_MAX 1024
#define DEVICES_TOLD 16

static bool is_link_local(const union ibv_gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

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

/* Return: whether @g is an address that can be bound to, of @family. */
static bool to_address(const union ibv_gid *g, int family, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	if (is_zero(g) || is_link_local(g) || is_ipv4(g) != (family == AF_INET))
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
		if (!v->query_gid(ctx, port, i, &gid) && to_address(&gid, family, ret))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int search_device(const struct verbs *v, struct ibv_device *dev,
			 const struct rdma_options *o, int family, struct sockaddr_storage *ret)
{
	struct ibv_context *ctx = v->open_device(dev);
	struct ibv_device_attr attr;
	int rc = -EADDRNOTAVAIL, r;

	if (!ctx)
		return -errno;
	if (!v->query_device(ctx, &attr))
		for (uint32_t p = 1; p <= attr.phys_port_cnt && rc; p++) {
			if (o->port && p != o->port)
				continue;
			r = search_port(v, ctx, (uint8_t)p, o, family, ret);
			if (r == 0 || rc == -EADDRNOTAVAIL)
				rc = r;
		}
	v->close_device(ctx);
	return rc;
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
	near = n < DEVICES_TOLD ? units_suggest(name, names, n) : NULL;
	if (near)
		return err_set(err, ENODEV, "NBOX_IB_HCA: there is no device '%s'; did you mean '%s'?",
			       name, near);
	return err_set(err, ENODEV, "NBOX_IB_HCA: there is no device '%s'; there are: %s", name,
		       n ? text : "none");
}

static int search(const struct rdma_options *o, int family, struct sockaddr_storage *ret,
		  struct err *err)
{
	int rc = -ENODEV, i, n = 0;
	struct ibv_device **list;
	const struct verbs *v;
	bool is_known = false;

	rc = verbs_get(&v, err);
	if (rc)
		return rc;
	list = v->get_device_list(&n);
	if (!list)
		return err_set(err, errno, "no list of RDMA devices: %s", strerror(errno));
	rc = -EADDRNOTAVAIL;
	for (i = 0; i < n && rc; i++) {
		if (o->hca[0] && strcmp(o->hca, v->get_device_name(list[i])) != 0)
			continue;
		is_known = true;
		rc = search_device(v, list[i], o, family, ret);
	}
	if (rc && !is_known && o->hca[0])
		rc = unknown_device(v, list, o->hca, err);
	else if (rc && !n)
		rc = err_set(err, ENODEV,
			     "there is no RDMA device (that a provider of libibverbs knows); "
			     "`nbox doctor` looks closer");
	else if (rc)
		rc = err_set(err, -rc,
			     "no %s address on device %s (NBOX_IB_HCA, NBOX_IB_PORT, NBOX_IB_GID_INDEX): "
			     "%s; `nbox doctor` lists ports and GIDs",
			     family == AF_INET ? "IPv4" : "IPv6", o->hca[0] ? o->hca : "(any)",
			     rc == -ENETDOWN ? "the port is down" : "no GID fits");
	v->free_device_list(list);
	return rc;
}

int rdma_source_address(const struct rdma_options *o, const struct sockaddr *to,
			struct sockaddr_storage *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	if (!o->hca[0] && !o->port && o->gid_index < 0)
		return 0;
	return search(o, to->sa_family, ret, err);
}

int rdma_own_address(const struct rdma_options *o, struct sockaddr_storage *ret, struct err *err)
{
	int rc = search(o, AF_INET, ret, err);

	return rc == -EADDRNOTAVAIL ? search(o, AF_INET6, ret, err) : rc;
}
