/* A port that real ranks connect to. It accepts, and hands on what has come. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "patches/records.h"

struct event;
struct event_base;
struct serve_link;
struct serve_port;

/* What all ports of a process have in common. */
struct port_env {
	struct event_base *base; /* borrowed */
	uint8_t address[NCCL_ADDRESS_BYTES];
	int reserve; /* owned; given up to refuse a connection when no descriptor is left */
	/* A connection on @fd (consumed) has come in at @p, from @from. */
	void (*taken)(void *ctx, struct serve_port *p, int fd,
		      const uint8_t from[NCCL_ADDRESS_BYTES]);
	void (*refused)(void *ctx, const char *from, const char *why);
	void *ctx;
};

struct serve_port {
	struct serve_port *next; /* of ports that were asked for */
	struct port_env *env;    /* borrowed */
	unsigned number;         /* as in enum bootstrap_port */
	struct serve_link
		*link; /* borrowed; the one that is to come in here. NULL: any number may */
	int fd;        /* owned */
	struct event *on_accept; /* owned */
	uint8_t address[NCCL_ADDRESS_BYTES];
};

/* Listens. Return: 0; -errno with the sentence. */
int port_open(struct port_env *env, unsigned number, struct serve_port **ret, struct err *err);
struct serve_port *port_free(struct serve_port *p); /* NULL is allowed; returns NULL */
