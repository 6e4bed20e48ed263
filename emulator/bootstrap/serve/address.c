/* See address.h. */
#include "bootstrap/serve/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct sockaddr_in6) == NCCL_ADDRESS_BYTES, "as in NCCL");

static struct sockaddr_in6 copy_of(const uint8_t address[NCCL_ADDRESS_BYTES])
{
	struct sockaddr_in6 a;

	memcpy(&a, address, sizeof(a));
	return a;
}

socklen_t address_len(const uint8_t address[NCCL_ADDRESS_BYTES])
{
	sa_family_t family = copy_of(address).sin6_family;

	if (family == AF_INET)
		return sizeof(struct sockaddr_in);
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

int address_set(uint8_t address[NCCL_ADDRESS_BYTES], const struct sockaddr *a)
{
	socklen_t len = a->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
			: a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : 0;

	if (!len)
		return -EAFNOSUPPORT;
	memset(address, 0, NCCL_ADDRESS_BYTES);
	memcpy(address, a, len);
	return 0;
}

void address_set_port(uint8_t address[NCCL_ADDRESS_BYTES], uint16_t port)
{
	struct sockaddr_in6 a = copy_of(address); /* IPv4 has it at the same place */

	a.sin6_port = htons(port);
	memcpy(address, &a, sizeof(a));
}

char *address_text(const uint8_t address[NCCL_ADDRESS_BYTES], char *buf, size_t size)
{
	struct sockaddr_in6 a = copy_of(address);
	struct sockaddr_in a4;
	char host[INET6_ADDRSTRLEN] = "?";

	memcpy(&a4, &a, sizeof(a4));
	if (a.sin6_family == AF_INET)
		inet_ntop(AF_INET, &a4.sin_addr, host, sizeof(host));
	else if (a.sin6_family == AF_INET6)
		inet_ntop(AF_INET6, &a.sin6_addr, host, sizeof(host));
	else
		snprintf(host, sizeof(host), "an address of family %u", (unsigned)a.sin6_family);
	snprintf(buf, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, ntohs(a.sin6_port));
	return buf;
}
