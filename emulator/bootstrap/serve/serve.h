/* Serves NCCL's bootstrap on sockets: ports, connections, limits; what the bytes mean,
 * bootstrap.h knows. On an event loop, one thread. */
#pragma once

#include "bootstrap/bootstrap.h"

struct event_base;
struct sockaddr;
struct bootstrap_serve;

struct bootstrap_serve_limits {
	unsigned n_connections;	     /* at once; more are closed with a line */
	uint64_t silence_ns;	     /* a connection that has not said its magic by then is closed */
};

/* What the room above wants to hear; as in struct bootstrap_sink. */
struct bootstrap_told {
	void (*failed)(void *ctx, struct bootstrap_comm *comm, const char *sentence);
	int (*votes)(void *ctx, struct bootstrap_comm *parent, int32_t *color, int32_t *key, struct err *err);
	void (*child)(void *ctx, struct bootstrap_comm *parent, struct bootstrap_comm *child);
	void (*record)(void *ctx, struct bootstrap_comm *comm, const char *what, uint32_t rank, const uint8_t *record, size_t bytes);
	/* A connection was refused: who, why. NULL-able. */
	void (*refused)(void *ctx, const char *sentence);
};

/**
 * bootstrap_serve_new - @base: borrowed
 * @address: where real ranks reach this process (IPv4 or IPv6); its port is not looked at
 * @limits: NULL: 4096 connections, 30 s
 *
 * Return: 0; -errno with the sentence.
 */
int bootstrap_serve_new(struct event_base *base, const struct sockaddr *address, const struct bootstrap_serve_limits *limits,
			const struct bootstrap_told *told, void *ctx, struct bootstrap_serve **ret, struct err *err);
void bootstrap_serve_free(struct bootstrap_serve *s); /* NULL is allowed; ends all communicators */
struct bootstrap *bootstrap_serve_bootstrap(struct bootstrap_serve *s);
