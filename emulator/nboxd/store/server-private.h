/* What store-server.c (connections) and store-virtual.c (answers for virtual ranks) share. */
#pragma once

#include <uthash.h>

#include "links/link.h"
#include "nboxd/server.h"
#include "nboxd/store/server.h"

/* One connection. */
struct store_peer {
	struct store_server *server;            /* borrowed */
	struct store_client *client;            /* owned */
	int fd;                                 /* owned */
	struct event *read_event, *write_event; /* owned */
	char name[80];                          /* its address */
	uint32_t pid;                           /* 0: it has not said (torch before PING) */
	int64_t rank;                           /* world rank; valid when has_rank */
	bool has_rank;
	bool is_stranger, is_waiting, is_touched, is_over, is_told;
	bool is_paused;            /* has not read its replies, and is not read from */
	uint64_t deadline_ns;      /* of a stranger */
	uint64_t wait_ns, look_ns; /* waits since; looked at again */
	struct store_peer *prev, *next, *prev_stranger, *next_stranger, *prev_waiting,
		*next_waiting, *next_touched;
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
	struct server *daemon;      /* borrowed */
	struct store *store;        /* owned */
	struct listener *listener;  /* owned; NULL: stopped */
	struct event *listen_event; /* owned */
	int reserve; /* owned; given up to refuse a connection when there are no more */
	char addr[300];
	struct store_peer *peers;     /* list, owned */
	struct store_peer *strangers; /* who have not shown the magic number, oldest first */
	struct store_peer *waiting;
	struct store_peer *touched; /* have replies to send, or are over */
	uint64_t n_peers, n_invented;
	uint64_t empty_ns; /* when the last peer went */
	uint64_t id_ns;    /* when an id was set last */
	uint64_t told_ns, n_told,
		n_untold;          /* log lines about waits since told_ns, and those left out */
	struct invented *invented; /* hash by key, owned */
	struct store_gloo *gloo;   /* owned; NULL before the first address */
	struct invented *by_real;  /* the same ones by real_id */
};

/* store-server.c: cuts off, in the next round. */
void store_peer_end(struct store_peer *p);
/* store-server.c: hangs up on the next one at @listen_fd, when no descriptor is left. */
void store_refuse_one(struct store_server *ss, int listen_fd);

/* store-virtual.c */
void virtual_on_missing(void *owner, void *client_owner, struct store_bytes key);
void virtual_on_set(void *owner, void *client_owner, struct store_bytes key,
		    struct store_bytes value);
int64_t virtual_initial_count(void *owner, struct store_bytes key, int64_t world);
/* Looks at waits that are due. */
void virtual_tick(struct store_server *ss, uint64_t now_ns);
void virtual_clear(struct store_server *ss);
