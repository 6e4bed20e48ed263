/* NCCL's bootstrap, as the ranks that do not exist speak it: nbox is the root and both neighbours
 * in the ring of every real rank, and the peer of all messages between ranks. It decides what bytes
 * go out for the bytes that come in; it has no socket, clock or thread. patches/ says what the
 * records are. One thread.
 *
 * A real rank never connects to another one directly in the bootstrap: messages between two real
 * ranks are passed on. So splits keep this shape. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "patches/records.h"
#include "patches/rewrite.h"

struct bootstrap;      /* all communicators of one responder */
struct bootstrap_comm; /* one of them */
struct bootstrap_conn; /* one TCP connection with a real rank, opened by it or by us */

/* A port that real ranks connect to. What a connection is about is told by the port, by the magic
 * (communicator) and by the message's head (sender, tag). A virtual receiver follows from these:
 * a tag of a transport's set-up holds the distance i between sender and receiver, which is r + i or
 * r - i; the near port is for receivers at most half the ring ahead of the sender. */
enum bootstrap_port {
	PORT_ROOT,
	PORT_NEAR, /* for virtual ranks p with (p - sender) mod n <= n / 2 */
	PORT_FAR,  /* for the other virtual ranks */
	PORT_REAL, /* + k: for the k-th real rank of a communicator */
	/* + d * PORT_DOOR: the same of door d. Before NCCL 2.24 the children of a parent may have
	 * one magic (2.21, 2.22: all; 2.23: those of one color); each has a door of its own. */
	PORT_DOOR = 1 << 16,
};

/* What the room above does for it. It calls nothing of bootstrap.h meanwhile, but
 * bootstrap_conn_set_sink() and bootstrap_conn_sink(). */
struct bootstrap_sink {
	/* The address of a port, told to real ranks; ports are made as they are asked for.
	 * Return: 0; -errno with the sentence. */
	int (*port)(void *sink, unsigned port, uint8_t ret_address[NCCL_ADDRESS_BYTES],
		    struct err *err);
	/* A port for one connection, @c: what comes goes to bootstrap_conn_in(). hang_up() may come
	 * before the connection; then the port is closed. Return: as port(). */
	int (*port_once)(void *sink, struct bootstrap_conn *c,
			 uint8_t ret_address[NCCL_ADDRESS_BYTES], struct err *err);
	/* Opens @c to a real rank's @address; when it is open, bytes are asked for with
	 * bootstrap_conn_out(). Where it cannot be opened, bootstrap_conn_ended() says so.
	 * Return: 0; -errno with the sentence: @c is gone. */
	int (*dial)(void *sink, struct bootstrap_conn *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		    struct err *err);
	/* @c has bytes to send, or room for bytes again. */
	void (*wake)(void *sink, struct bootstrap_conn *c);
	/* @c is at its end: close it when what bootstrap_conn_out() gives is sent (@is_now: at
	 * once), and then, after this call has returned, bootstrap_conn_closed(). Once for each. */
	void (*hang_up)(void *sink, struct bootstrap_conn *c, bool is_now);
	/* @c belongs to no communicator, and why; hang_up() follows. NULL-able. */
	void (*refused)(void *sink, struct bootstrap_conn *c, const char *sentence);
	/* The communicator has failed, all its connections are hung up. It lives until
	 * bootstrap_comm_end(). */
	void (*failed)(void *sink, struct bootstrap_comm *comm, const char *sentence);
	/* Votes of an ncclCommSplit: color[r] and key[r], of all ranks of @parent, are set for real
	 * ranks; set those of the others. Before NCCL 2.23 it is called twice, first without the
	 * real ranks' keys (all 0), and the second time colors stay as they are. NULL: splits fail.
	 * Return: 0; -errno with the sentence. */
	int (*votes)(void *sink, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		     struct err *err);
	/* A child was made by ncclCommSplit or Shrink, NULL-able. One of a single rank is not: NCCL
	 * talks to nobody there. */
	void (*child)(void *sink, struct bootstrap_comm *parent, struct bootstrap_comm *child);
	/* The record that a real rank gave in an all-gather (for the oracle), NULL-able.
	 * @what: "contact", "peer", "graph", "split", "copied". */
	void (*record)(void *sink, struct bootstrap_comm *comm, const char *what, uint32_t rank,
		       const uint8_t *record, size_t bytes);
};

/* @sink: borrowed, called with @ctx. @magic: gives 64 random bits, for each id; 0 or -errno.
 * NULL: no memory. */
struct bootstrap *bootstrap_new(const struct bootstrap_sink *sink, void *ctx,
				int (*magic)(void *ctx, uint64_t *ret));
/* NULL is allowed. Communicators are ended without a word to the sink; connections that are not yet
 * bootstrap_conn_closed() are freed. */
void bootstrap_free(struct bootstrap *b);

/**
 * bootstrap_comm_make - a communicator of the virtual size
 * @records: of the NCCL that its real ranks have
 * @node, @template: [n_ranks], copied; a rank is real where template[r] == r
 * @n_roots: ids to make, 1 as a rule (ncclCommInitRankScalable takes several)
 * @ret_ids: [n_roots][NCCL_ID_BYTES], what the real ranks give to ncclCommInitRank()
 *
 * Return: 0; -EINVAL, -ENOMEM, or what the sink returned, with the sentence.
 */
int bootstrap_comm_make(struct bootstrap *b, const struct nccl_records *records, uint32_t n_ranks,
			const uint32_t *node, const uint32_t *template, uint32_t n_roots,
			uint8_t *ret_ids, struct bootstrap_comm **ret, struct err *err);
/* Tells that real ranks will call ncclCommShrink without @excluded (sorted ranks of @parent): its
 * bootstrap does not say whom it leaves out. Return: 0; -errno with the sentence. */
int bootstrap_comm_shrink(struct bootstrap_comm *parent, const uint32_t *excluded, size_t n,
			  struct err *err);
/* Its connections are hung up, and it is freed, which nothing else does. Children live on, but
 * those that not all members have joined yet: they fail; and one that is ended so early fails its
 * parent, in which ranks wait for it. */
void bootstrap_comm_end(struct bootstrap_comm *c);
/* What it waits for, and for whom: "all-gather 2 (peer) waits for ranks 1, 5"; "" when nothing is
 * under way. Return: @buf. */
char *bootstrap_comm_waits(const struct bootstrap_comm *c, char *buf, size_t size);
uint32_t bootstrap_comm_size(const struct bootstrap_comm *c);
/* How many connections its real ranks have set up with virtual ranks, each direction by itself. */
uint64_t bootstrap_comm_transports(const struct bootstrap_comm *c);

/* --- connections ------------------------------------------------------------------- */

/* A real rank has connected to @port. NULL: no memory. */
struct bootstrap_conn *bootstrap_conn_accepted(struct bootstrap *b, unsigned port);
/* May a connection at the port of @c alone begin with @magic? If not, it is not its real rank's. */
bool bootstrap_conn_awaits(const struct bootstrap_conn *c, uint64_t magic);
/* How many bytes it can take now (0: wait for wake()). */
size_t bootstrap_conn_room(const struct bootstrap_conn *c);
/* @n bytes came, at most bootstrap_conn_room(). What is wrong goes to the sink (failed, or refused
 * and hang_up for a connection that belongs to no communicator). */
void bootstrap_conn_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n);
/* Takes up to @size bytes to send. Return: how many; 0: none now. */
size_t bootstrap_conn_out(struct bootstrap_conn *c, uint8_t *buf, size_t size);
/* The other side has closed it (EOF: @error 0), or it broke or was never opened (@error: errno).
 * Not after hang_up(), which comes for @c in this call or, while it has bytes to send, later. */
void bootstrap_conn_ended(struct bootstrap_conn *c, int error);
/* The room above has closed @c, after hang_up(): it is freed. */
void bootstrap_conn_closed(struct bootstrap_conn *c);
void bootstrap_conn_set_sink(struct bootstrap_conn *c, void *data); /* the room above's own */
void *bootstrap_conn_sink(const struct bootstrap_conn *c);

#define NCCL_HANDLE_BYTES 128 /* of a network's handle, at the begin of a connection's entry */
#define BOOTSTRAP_HANDLE_HEAD "NBOX-net"
/* The handle that a virtual rank gives for its end of a network connection: NCCL's plug-in gets it
 * in connect(), zeros behind it. The handles that the plug-in's own listen() gives must begin so
 * too, or have some other byte that is not 0 in bytes 4 to 127: so an entry of a receiver is told
 * from one of a sender, which holds a rank in 4 bytes and zeros. */
struct bootstrap_handle {
	char head[8];             /* BOOTSTRAP_HANDLE_HEAD, without the 0 */
	uint64_t magic;           /* the communicator's */
	uint32_t from, to, index; /* the real sender, the virtual receiver, which of several */
	uint32_t door;            /* as in enum bootstrap_port */
};
