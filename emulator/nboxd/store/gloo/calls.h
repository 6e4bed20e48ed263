/* Gloo's calls in which virtual ranks take part: what real ranks send and ask for, frame by frame,
 * and what nboxd answers. Groups, ports and connections are here too, since calls are answered at
 * them; groups.h makes them. */
#pragma once

#include <sys/socket.h>
#include <uthash.h>

#include "config/config.h"
#include "nboxd/store/buffer.h"
#include "nboxd/store/gloo/gloo.h"
#include "nboxd/store/gloo/ring.h"
#include "nboxd/store/protocol.h"

struct bufferevent;
struct event;
struct loop;
struct membership;

#define ALL_RANKS UINT32_MAX

/* What gloo's groups stand on, and how they speak to the store; all borrowed. */
struct gloo_env {
	const struct config *config;
	struct loop *loop;
	void *ctx;
	/* Return: 0; -ENOMEM, -ENOBUFS. */
	int (*set_address)(void *ctx, struct store_bytes key, struct store_bytes value);
	/* The members of torch's group with this name; NULL: not known. */
	const struct membership *(*group_members)(void *ctx, struct store_bytes name);
	/* Takes and closes one connection at @listen_fd: no descriptor is left. */
	void (*refuse_one)(void *ctx, int listen_fd);
};

struct gloo_conn {
	struct gloo_group *group;         /* borrowed */
	struct bufferevent *stream;       /* owned */
	uint32_t virtual_rank, real_rank; /* ALL_RANKS: not yet known */
	bool has_seq;
	uint64_t since_ns;
	struct gloo_conn *prev, *next;
};

/* A real rank is ready to receive from a virtual one. */
struct gloo_ask {
	struct gloo_conn *conn; /* borrowed */
	uint64_t length, since_ns;
	bool is_told;
	struct gloo_ask *prev, *next;
};

struct gloo_pair {
	uint32_t from, to;
};

struct gloo_op {
	uint64_t slot;
	struct gloo_ask *asks;  /* owned */
	struct gloo_pair *come; /* barrier: messages of real ranks; owned */
	size_t n_come;
	struct buffer content; /* broadcast */
	bool has_content;
	struct gloo_ring ring; /* all-gather */
	struct gloo_op *prev, *next;
};

struct gloo_port {
	struct gloo_group *group; /* borrowed */
	uint32_t virtual_rank;    /* ALL_RANKS: of all of the group */
	int fd;                   /* owned */
	struct event *event;      /* owned */
	struct sockaddr_storage addr;
	struct gloo_port *prev, *next;
};

struct gloo_member {
	uint32_t rank;
	int64_t world_rank;
};

struct gloo_group {
	UT_hash_handle hh;
	const struct gloo_env *env; /* borrowed */
	bool is_default, is_lazy, is_told;
	uint32_t n_ranks;             /* 0: not known */
	struct sockaddr_storage addr; /* of the first real member */
	struct gloo_member *real;     /* owned */
	uint32_t *ranks;              /* owned: theirs, sorted */
	size_t n_real, n_ops;
	uint64_t set_ns;         /* when a real rank has set its address last */
	struct gloo_port *ports; /* owned lists */
	struct gloo_conn *conns;
	struct gloo_op *ops;
	char name[72];
	size_t group_at, n_group; /* torch's name of it, in the key */
	size_t n_key;
	uint8_t key[];
};

void gloo_op_free(struct gloo_group *g, struct gloo_op *op);
/* @ctx: struct gloo_group */
bool gloo_is_real(void *ctx, uint32_t rank);
/* Shuts @c down; it is freed when libevent sees its end. */
void gloo_conn_end(struct gloo_conn *c);
/* A whole frame of a connection that has named its ranks. Return: 0; negative errno: the connection
 * is over. */
int gloo_on_frame(struct gloo_conn *c, const struct gloo_frame *f, const void *body);
