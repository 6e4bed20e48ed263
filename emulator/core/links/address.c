/* See address.h. */
#include "links/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define FORMS "it is shm:/path/of.sock, tcp:host:port or rdma:host:port"

static int parse_shm(const char *addr, const char *path, struct link_addr *ret, struct err *err)
{
	if (!path[0])
		return err_set(err, EINVAL, "address '%s' has no path; " FORMS, addr);
	if (strlen(path) >= sizeof(ret->path))
		return err_set(err, ENAMETOOLONG,
			       "address '%s': the path of a socket has at most %zu bytes, this has "
			       "%zu; choose a shorter one",
			       addr, sizeof(ret->path) - 1, strlen(path));
	ret->kind = ADDR_SHM;
	strcpy(ret->path, path);
	return 0;
}

/* tcp and rdma. */
static int parse_host(const char *addr, const char *rest, struct link_addr *ret, struct err *err)
{
	const char *colon = strrchr(rest, ':'), *host = rest;
	size_t host_len;
	uint64_t port;

	if (!colon)
		return err_set(err, EINVAL, "address '%s' has no port; " FORMS, addr);
	host_len = (size_t)(colon - rest);
	if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
		host++;
		host_len -= 2;
	} else if (memchr(host, ':', host_len)) {
		return err_set(err, EINVAL,
			       "address '%s': an IPv6 address goes in brackets, as in "
			       "%.*s[::1]:4000",
			       addr, (int)(rest - addr), addr);
	}
	if (!host_len)
		return err_set(err, EINVAL, "address '%s' has no host; " FORMS, addr);
	if (host_len >= sizeof(ret->host))
		return err_set(err, ENAMETOOLONG, "address '%s': the host's name is too long",
			       addr);
	if (units_count(colon + 1, &port, NULL) || port > 65535)
		return err_set(err, EINVAL,
			       "address '%s': '%s' is no port; it is a number to 65535", addr,
			       colon + 1);
	memcpy(ret->host, host, host_len);
	ret->host[host_len] = '\0';
	if (strlen(colon + 1) >= sizeof(ret->port))
		return err_set(err, EINVAL, "address '%s': the port has too many digits", addr);
	strcpy(ret->port, colon + 1);
	return 0;
}

int link_addr_parse(const char *addr, struct link_addr *ret, struct err *err)
{
	struct link_addr a;
	int r;

	memset(&a, 0, sizeof(a));
	if (!strncmp(addr, "shm:", 4))
		r = parse_shm(addr, addr + 4, &a, err);
	else if (!strncmp(addr, "tcp:", 4))
		r = parse_host(addr, addr + 4, &a, err);
	else if (!strncmp(addr, "rdma:", 5))
		r = parse_host(addr, addr + 5, &a, err);
	else
		r = err_set(err, EINVAL, "address '%s' names no kind of link; " FORMS, addr);
	if (r)
		return r;
	if (addr[0] != 's')
		a.kind = addr[0] == 't' ? ADDR_TCP : ADDR_RDMA;
	*ret = a;
	return 0;
}

int link_addr_resolve(const struct link_addr *a, int flags, struct addrinfo **ret, struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
	int r = getaddrinfo(a->host, a->port, &hints, ret);

	if (r)
		return err_set(err, EHOSTUNREACH, "the host name cannot be resolved: %s",
			       gai_strerror(r));
	return 0;
}

void link_addr_name(const char *kind, const struct sockaddr *a, char *buf, size_t size)
{
	socklen_t len =
		a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	char host[64], port[16];

	if (getnameinfo(a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(buf, size, "%s:?", kind);
	else
		snprintf(buf, size, strchr(host, ':') ? "%s:[%s]:%s" : "%s:%s:%s", kind, host,
			 port);
}
