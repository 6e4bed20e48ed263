/* nboxd as the job's TCPStore server: sockets, times and the world for the store (store.h). Runs on
 * nboxd's loop. One connection is a peer (peer.h); what is answered for ranks that do not exist is
 * virtual.h's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nboxd/store/serve/peer.h"

/* Listens at @addr, HOST:PORT, for all that @env names, which must stay. Return: 0; negative errno
 * with the sentence. */
int store_server_open(const struct store_env *env, const char *addr, struct store_server **ret,
		      struct err *err);
struct store_server *store_server_close(struct store_server *ss); /* NULL allowed; returns NULL */
const char *store_server_addr(const struct store_server *ss);     /* HOST:PORT with the real port */
void store_server_stop_listening(struct store_server *ss);        /* NULL allowed */

/* More is known than before: what waits is looked at in the next tick. NULL allowed. */
void store_server_look_again(struct store_server *ss);
/* Looks at strangers and at waits. Return: when to look again; UINT64_MAX: no need. */
uint64_t store_server_tick(struct store_server *ss, uint64_t now_ns);
/* For struct capacity; @ss: struct store_server. Until when the oldest client that has said nothing
 * may go on so, but for @but (NULL: none); one whose bytes can be read has said something. Return:
 * UINT64_MAX: there is none. */
uint64_t store_server_silent_until(void *ss, const void *but);
/* Cuts that one off. */
void store_server_oust_silent(void *ss, const void *but);
struct store_server_counts {
	struct store_counts store;
	uint64_t n_invented;
};
struct store_server_counts store_server_counts(const struct store_server *ss);
