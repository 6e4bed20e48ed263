/* Serves NCCL's bootstrap on sockets: ports, connections, limits; what the bytes mean,
 * bootstrap.h knows. On an event loop, one thread. Nothing here waits.
 *
 * A connection that has not said its magic holds a place only while there are enough: it is ended
 * when another one needs it. At a port for one connection others are let in until one has said its
 * magic, as NCCL itself does it. Of a connection 64 KiB are kept here, beside what the machine
 * keeps and the system's buffers. The program raises RLIMIT_NOFILE. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "bootstrap/serve/told.h"

struct event_base;
struct sockaddr;
struct bootstrap_serve;

/**
 * bootstrap_serve_new - a machine with sockets
 * @base: borrowed
 * @address: where real ranks reach this process (IPv4 or IPv6); its port is not looked at
 * @limits: NULL: 4096 connections, 30 s
 * @told: copied; called with @ctx
 *
 * Return: 0; -errno with the sentence.
 */
int bootstrap_serve_new(struct event_base *base, const struct sockaddr *address,
			const struct bootstrap_serve_limits *limits,
			const struct bootstrap_told *told, void *ctx, struct bootstrap_serve **ret,
			struct err *err);
/* NULL is allowed. Ends all communicators and connections, without a word to the room above. */
void bootstrap_serve_free(struct bootstrap_serve *s);
/* The machine, for bootstrap_comm_make() and what follows; @s owns it. */
struct bootstrap *bootstrap_serve_bootstrap(struct bootstrap_serve *s);
