/* One connection with a real rank: a queue of bytes to send, and a kind, which says what becomes of
 * those that come. A kind may change: a connection begins at a door and becomes, say, a relay. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "bootstrap/frame.h"

#define CONN_ROOM_BYTES (64u << 10)

struct conn_kind {
	const char *name;
	/* Bytes came; it takes all. */
	void (*in)(struct bootstrap_conn *c, const uint8_t *bytes, size_t n);
	/* The other side has closed it, or it broke (@error). It must hang up, or set
	 * ends_when_sent. */
	void (*ended)(struct bootstrap_conn *c, int error);
	/* The queue is empty: puts more into it, where there is more. NULL-able. */
	void (*more)(struct bootstrap_conn *c);
	/* Bytes have left the queue. NULL-able. */
	void (*sent)(struct bootstrap_conn *c);
	/* NULL: CONN_ROOM_BYTES */
	size_t (*room)(const struct bootstrap_conn *c);
};

/* A place in the frames that go one way on one connection of the ring. */
struct cursor {
	uint32_t gather, step; /* the all-gather, the frame in it */
	uint32_t at;           /* bytes of the frame that are through, its size's among them */
	int32_t size;          /* of the frame, as it came */
};

struct bootstrap_conn {
	struct bootstrap *all;
	const struct bootstrap_sink *sink;
	void *ctx;       /* the sink's */
	void *sink_data; /* bootstrap_conn_set_sink() */
	const struct conn_kind *kind;
	struct bootstrap_comm *comm;        /* NULL: none yet, or hung up */
	struct bootstrap_conn *prev, *next; /* in *list */
	struct bootstrap_conn **list;
	uint32_t door; /* where it was accepted, and at which port of it */
	unsigned port;
	bool is_known;       /* to the sink */
	bool is_hung_up;     /* hang_up() was called */
	bool was_open;       /* bytes have been asked for, or have come */
	bool ends_when_sent; /* hang up when the queue is empty */
	uint8_t *out;        /* owned: the queue, [out_at, out_end) of out_size */
	size_t out_at, out_end, out_size;
	struct hello hello;
	struct frame frame;
	uint32_t member;             /* of which real rank: its number among them */
	bool is_next;                /* of the ring: we are its next, not its prev */
	struct cursor in, give;      /* of the ring */
	uint32_t root;               /* check-in: at which root */
	uint32_t sender;             /* message: the rank, when head_got says so */
	int32_t tag;                 /* likewise */
	uint32_t heads_got;          /* message: frames of its head */
	struct bootstrap_conn *pair; /* relay: the other end; NULL: gone */
};

/* NULL: no memory. In @list. */
struct bootstrap_conn *conn_new(struct bootstrap *all, const struct bootstrap_sink *sink, void *ctx,
				const struct conn_kind *kind, struct bootstrap_conn **list);
void conn_free(struct bootstrap_conn *c);
void conn_move(struct bootstrap_conn *c, struct bootstrap_conn **list);
/* Puts bytes into the queue; conn_wake() tells the room above. Return: 0; -ENOMEM. */
int conn_put(struct bootstrap_conn *c, const void *bytes, size_t n);
/* Makes room for @n bytes at the end of the queue, which the caller fills. NULL: no memory. */
uint8_t *conn_put_room(struct bootstrap_conn *c, size_t n);
int conn_put_frame(struct bootstrap_conn *c, const void *bytes, int32_t n);
int conn_put_hello(struct bootstrap_conn *c, uint64_t magic);
size_t conn_queued(const struct bootstrap_conn *c);
void conn_wake(struct bootstrap_conn *c);
/* Once; later calls do nothing. */
void conn_hang_up(struct bootstrap_conn *c, bool is_now);
/* Hangs up when the queue is empty. */
void conn_end_when_sent(struct bootstrap_conn *c);
/* "" or ": Connection refused" */
const char *conn_error_text(int error, char *buf, size_t size);
