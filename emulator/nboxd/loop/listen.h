/* The addresses at which links come in. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "nboxd/loop/capacity.h"
#include "nboxd/loop/loop.h"

struct config;
struct listening;
struct sockaddr_storage;

struct listen {
	struct loop *loop;         /* borrowed */
	struct capacity *capacity; /* borrowed */
	struct listening *list;    /* owned: one for each address */
	size_t n;
};

/* Binds all addresses of @c; its options of rdma links hold for the links that this process opens
 * from now on. Return: 0; negative errno with the sentence; @l is the caller's to
 * close. */
int listen_open(struct listen *l, const struct config *c, struct err *err);
/* Links come in from now on. Return: 0; -ENOMEM. */
int listen_start(struct listen *l);
void listen_stop(struct listen *l); /* no link comes in any more; again is allowed */
void listen_close(struct listen *l);
/* The address number @i; NULL: closed. */
const char *listen_addr(const struct listen *l, size_t i);
/* An address of this process for connections beside the links, without a port: that of a link from
 * other hosts where there is one, else the loopback's. Return: 0; -EINVAL with the sentence: it
 * listens at all addresses of the host; -EHOSTUNREACH with the sentence. */
int listen_reach(const struct listen *l, struct sockaddr_storage *ret, struct err *err);
/* All but the first, each after a space. Return: @buf. */
char *listen_more_addrs(const struct listen *l, char *buf, size_t size);
