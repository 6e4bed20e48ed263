/* nboxd as the job's TCPStore server: sockets, times and the world for the store of
 * ../store. Runs on nboxd's loop; see server.h.
 *
 * One connection is a peer. What it waits for is looked at after settle and then once a
 * second: an id that a virtual rank would have made is invented, and after 5 s the log
 * says what is waited for, why, and what to do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "nboxd/store/store.h"
#include "nboxd/store/torch-key.h"
#include "wire/wire.h"

struct server;
struct store_server;

/* What knows of process groups (see groups.h); set server->store_hooks, NULL allowed, as
 * each function. Called on the loop. */
struct store_hooks {
	/* A real rank gave @key this value. */
	void (*on_set)(struct server *s, struct store_bytes key, struct store_bytes value);
	/* World rank of a rank of the key's group; -1: not known. */
	int64_t (*world_rank)(struct server *s, const struct torch_key *k, uint32_t group_rank);
	/* The id of a communicator whose first rank is virtual. Return: false: any will do. */
	bool (*make_id)(struct server *s, const struct torch_key *k, uint8_t ret[WIRE_ID_BYTES]);
};

/* Listens at @addr, HOST:PORT. Return: 0; negative errno with the sentence. */
int store_server_open(struct server *s, const char *addr, struct store_server **ret,
		      struct err *err);
struct store_server *store_server_close(struct store_server *ss); /* NULL allowed; returns NULL */
const char *store_server_addr(const struct store_server *ss);     /* HOST:PORT with the real port */
void store_server_stop_listening(struct store_server *ss);        /* NULL allowed */

/* More is known than before: what waits is looked at in the next tick. NULL allowed. */
void store_server_look_again(struct store_server *ss);
/* Looks at strangers and at waits. Return: when to look again; UINT64_MAX: no need. */
uint64_t store_server_tick(struct store_server *ss, uint64_t now_ns);
/* Until when the oldest client that has said nothing may go on so, but for @but (NULL: nobody);
 * what it may have sent meanwhile is read first. Return: UINT64_MAX: there is none. */
uint64_t store_server_silent_until(struct store_server *ss, const void *but);
/* Cuts that one off. */
void store_server_oust_silent(struct store_server *ss, const void *but);
/* A key that nboxd made up for a rank that turned out to be real has two ids: makes @id
 * the one that others may have been given. */
void store_server_canonical_id(const struct store_server *ss, uint8_t id[WIRE_ID_BYTES]);

struct store_server_counts {
	struct store_counts store;
	uint64_t n_invented;
};
struct store_server_counts store_server_counts(const struct store_server *ss);
/* When the oldest wait began; UINT64_MAX: nobody waits. */
uint64_t store_server_waits_since_ns(const struct store_server *ss);
/* A process of this host that waits; 0: none is known. */
uint32_t store_server_waiting_pid(const struct store_server *ss);
/* One sentence for each wait that is older than 1 s. */
void store_server_describe(const struct store_server *ss, uint64_t now_ns,
			   void (*say)(void *ctx, const char *sentence), void *ctx);
