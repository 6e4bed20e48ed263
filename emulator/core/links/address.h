/* Inside links/: addresses of links, from text to what the system calls take, and back. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct addrinfo;
struct sockaddr;

/* "shm:/path", "tcp:host:port" or "rdma:host:port" taken apart. */
struct link_addr {
	enum { ADDR_SHM, ADDR_TCP, ADDR_RDMA } kind;
	char path[108]; /* shm: fits a sockaddr_un */
	char host[256]; /* tcp, rdma; without brackets */
	char port[8];
};
int link_addr_parse(const char *addr, struct link_addr *ret, struct err *err);
/* tcp, rdma: its host and port as the system has them; @flags: AI_PASSIVE to listen. The caller
 * frees the list by freeaddrinfo(). Return: 0; -EHOSTUNREACH with the sentence, which does not name
 * the address. */
int link_addr_resolve(const struct link_addr *a, int flags, struct addrinfo **ret, struct err *err);
/* Into @buf: "tcp:10.0.0.1:4000", with @kind "tcp"; "tcp:?" where @a is no address of the internet.
 */
void link_addr_name(const char *kind, const struct sockaddr *a, char *buf, size_t size);
