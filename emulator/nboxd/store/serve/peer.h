/* One connection of the store, and what the server of all of them keeps. */
#pragma once

#include <uthash.h>

#include "config/config.h"
#include "links/link.h"
#include "nboxd/loop/capacity.h"
#include "nboxd/loop/loop.h"
#include "nboxd/store/client.h"
#include "nboxd/store/torch-key.h"

struct bufferevent;
struct players;
struct processes;

/* What knows of process groups. Called on the loop. */
struct store_hooks {
	/* A real rank gave @key this value. */
	void (*on_set)(void *ctx, struct store_bytes key, struct store_bytes value);
	/* World rank of a rank of the key's group; -1: not known. */
	int64_t (*world_rank)(void *ctx, const struct torch_key *k, uint32_t group_rank);
	/* The id of a communicator whose first rank is virtual. */
	void (*make_id)(void *ctx, const struct torch_key *k, uint8_t ret[WIRE_ID_BYTES]);
	/* The members of the group with this name; NULL: not known. Borrowed until the next frame.
	 */
	const struct membership *(*group_members)(void *ctx, struct store_bytes name);
};

/* What the store's server stands on; all borrowed. */
struct store_env {
	const struct config *config;
	struct loop *loop;
	struct capacity *capacity;
	const struct players *players;
	const struct processes *processes;
	const struct store_hooks *hooks;
	void *hooks_ctx;
};

/* One connection. */
struct store_peer {
	struct store_server *server; /* borrowed */
	struct store_client *client; /* owned */
	int fd;                      /* owned */
	struct bufferevent *stream;  /* owned */
	char name[80];               /* its address */
	uint32_t pid;                /* 0: it has not said (torch before PING) */
	int64_t rank;                /* world rank; valid when has_rank */
	bool has_rank;
	bool is_stranger, is_waiting, is_told;
	bool is_over;              /* it is freed when its replies have gone out */
	uint64_t deadline_ns;      /* of a stranger */
	uint64_t wait_ns, look_ns; /* waits since; looked at again */
	struct store_peer *prev, *next, *prev_stranger, *next_stranger, *prev_waiting,
		*next_waiting;
};

/* An id that nboxd made for @key, and the one that a real rank set after all. */
struct invented {
	UT_hash_handle hh;      /* by key */
	UT_hash_handle hh_real; /* by real_id, once has_real */
	uint8_t id[WIRE_ID_BYTES], real_id[WIRE_ID_BYTES];
	bool has_real;
	size_t n_key;
	uint8_t key[];
};

struct store_server {
	struct store_env env;
	struct store *store;        /* owned */
	struct listener *listener;  /* owned; NULL: stopped */
	struct event *listen_event; /* owned */
	int reserve; /* owned; given up to refuse a connection when there are no more */
	char addr[300];
	struct store_peer *peers;     /* list, owned */
	struct store_peer *strangers; /* have not shown the magic number; oldest first */
	struct store_peer *waiting;
	uint64_t n_peers, n_invented;
	uint64_t empty_ns; /* when the last peer went */
	uint64_t id_ns;    /* when an id was set last */
	uint64_t told_ns, n_told,
		n_untold;          /* log lines about waits since told_ns, and those left out */
	struct invented *invented; /* hash by key, owned */
	struct store_gloo *gloo;   /* owned */
	struct invented *by_real;  /* the same ones by real_id */
};

/* Shuts @p down; it is freed when libevent sees its end. */
void store_peer_end(struct store_peer *p);
/* World rank of the process behind the connection; -1: not known. From the worker with the same pid
 * if it has come already, else from how the process was started. */
int64_t store_peer_rank(struct store_peer *p);
bool store_peer_is_here(const struct store_peer *p); /* of this host */
/* "rank 3 (pid 17)". Return: @buf. */
char *store_peer_text(struct store_peer *p, char *buf, size_t size);
