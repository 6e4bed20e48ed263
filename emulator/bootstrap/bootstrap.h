/* NCCL's bootstrap, as the ranks that do not exist speak it: nbox is the root and both neighbours in
 * the ring of every real rank, and the peer of all messages between ranks. It decides what bytes go
 * out for the bytes that come in; it has no socket, clock or thread. patches/ says what the records
 * are. One thread.
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

struct bootstrap;      /* all communicators of one nboxd */
struct bootstrap_comm; /* one of them */
struct bootstrap_conn; /* one TCP connection with a real rank, opened by it or by us */

/* A port that real ranks connect to. What a connection is about is told by the port, by the magic
 * (communicator) and by the message's head (sender, tag). A virtual receiver follows from these:
 * a tag of a transport's set-up holds the distance i between sender and receiver, which is r + i or
 * r - i; the near port is for receivers at most half the ring ahead of the sender. */
enum bootstrap_port {
	PORT_ROOT,
	PORT_NEAR,	 /* for virtual ranks p with (p - sender) mod n <= n / 2 */
	PORT_FAR,	 /* for the other virtual ranks */
	PORT_REAL,	 /* + k: for the k-th real rank of a communicator */
};

/* What the room above does for it. No function here calls back into bootstrap.h. */
struct bootstrap_sink {
	/* The address of a port, told to real ranks; ports are made as they are asked for.
	 * Return: 0; -errno with the sentence. */
	int (*port)(void *sink, unsigned port, uint8_t ret_address[NCCL_ADDRESS_BYTES], struct err *err);
	/* A port for one connection, @c; bootstrap_conn_in() is called with what comes.
	 * Return: as port(). */
	int (*port_once)(void *sink, struct bootstrap_conn *c, uint8_t ret_address[NCCL_ADDRESS_BYTES], struct err *err);
	/* Opens @c to a real rank's @address; bytes are asked for when it is open. */
	int (*dial)(void *sink, struct bootstrap_conn *c, const uint8_t address[NCCL_ADDRESS_BYTES], struct err *err);
	/* @c has bytes to send, or room for bytes again. */
	void (*wake)(void *sink, struct bootstrap_conn *c);
	/* @c is at its end: close it when what it has to send is sent (@is_now: at once), then
	 * bootstrap_conn_closed(). */
	void (*hang_up)(void *sink, struct bootstrap_conn *c, bool is_now);
	/* The communicator has failed, all its connections are hung up. */
	void (*failed)(void *sink, struct bootstrap_comm *comm, const char *sentence);
	/* How the members of a split's color... see bootstrap_split_votes. Votes of virtual ranks:
	 * color[v], key[v] are set for real ranks; set the others. Return: 0; -errno with the sentence. */
	int (*votes)(void *sink, struct bootstrap_comm *parent, int32_t *color, int32_t *key, struct err *err);
	/* A child was made by ncclCommSplit or Shrink, NULL-able. */
	void (*child)(void *sink, struct bootstrap_comm *parent, struct bootstrap_comm *child);
	/* The record that a real rank gave in an all-gather (for the oracle), NULL-able.
	 * @what: "contact", "peer", "graph", "split", "copied". */
	void (*record)(void *sink, struct bootstrap_comm *comm, const char *what, uint32_t rank, const uint8_t *record, size_t bytes);
};

/* @magic_of: 64 random bits from the caller's source for each id. */
struct bootstrap *bootstrap_new(const struct bootstrap_sink *sink, void *ctx, int (*magic)(void *ctx, uint64_t *ret));
void bootstrap_free(struct bootstrap *b); /* all connections must be closed */

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
			const uint32_t *node, const uint32_t *template, uint32_t n_roots, uint8_t *ret_ids,
			struct bootstrap_comm **ret, struct err *err);
/* Tells that real ranks will call ncclCommShrink without @excluded (sorted ranks of @parent): its
 * bootstrap does not say whom it leaves out. Return: 0; -errno with the sentence. */
int bootstrap_comm_shrink(struct bootstrap_comm *parent, const uint32_t *excluded, size_t n, struct err *err);
/* Its connections are hung up. Children live on. */
void bootstrap_comm_end(struct bootstrap_comm *c);
/* Whom and what it waits for ("rank 3 has not checked in", "all-gather 2 (peer) waits for ranks 1, 5"),
 * "" when nothing is under way. Return: @buf. */
char *bootstrap_comm_waits(const struct bootstrap_comm *c, char *buf, size_t size);
uint32_t bootstrap_comm_size(const struct bootstrap_comm *c);
/* How many transports its real ranks have set up with virtual ranks, and bytes of our handles. */
uint64_t bootstrap_comm_transports(const struct bootstrap_comm *c);

/* --- connections ------------------------------------------------------------------- */

/* A real rank has connected to @port. NULL: no memory. */
struct bootstrap_conn *bootstrap_conn_accepted(struct bootstrap *b, unsigned port);
/* How many bytes it can take now (0: wait for wake()). */
size_t bootstrap_conn_room(const struct bootstrap_conn *c);
/* @bytes came, at most bootstrap_conn_room(). What is wrong goes to the sink (failed, or hang_up for
 * a connection that belongs to no communicator). */
void bootstrap_conn_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n);
/* Takes up to @size bytes to send. Return: how many; 0: none now. */
size_t bootstrap_conn_out(struct bootstrap_conn *c, uint8_t *buf, size_t size);
/* The other side has closed it for sending (EOF), or it broke (@error: errno), or we have. @c is freed
 * where hang_up() was called for it before. */
void bootstrap_conn_ended(struct bootstrap_conn *c, int error);
void bootstrap_conn_set_sink(struct bootstrap_conn *c, void *data); /* the room above's own */
void *bootstrap_conn_sink(const struct bootstrap_conn *c);

/* The handle that a virtual rank gives for its end of a network connection: NCCL's plug-in gets it
 * in connect(). NCCL_HANDLE bytes in the record are 128. */
struct bootstrap_handle {
	char head[8]; /* "NBOX-net" */
	uint64_t magic;
	uint32_t from, to, index, pad; /* the real sender, the virtual receiver, which of several */
};
