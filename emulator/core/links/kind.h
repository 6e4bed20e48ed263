/* Inside links/: what a kind of link (tcp.c, shm.c, rdma/) gives the core (link.c). The core owns
 * the queue of frames to send and the parser of frames received; a kind only moves bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "wire/wire.h"

#define LINK_PEER_MAX 128
#define IO_END (-ENODATA) /* of read(): the peer will send nothing more */

/* A part of the stream of frames. */
struct link_seg {
	const void *base;
	uint64_t bytes;
	struct link_memory *memory; /* NULL: none that was registered */
	bool is_offered;            /* the peer reads it, where it can */
	bool is_lent;               /* it stays where it is until it is done; else copy it */
	bool is_message;            /* of the body of a MESSAGE */
	bool is_gpu; /* memory of a GPU: nobody reads it; @base counts on beyond the end of the lent
			memory */
};

struct link;
struct link_events;
struct link_gpu;
struct link_memory;

struct link_ops {
	const char *kind;
	/* Takes bytes from the front of @iov. Return: how many, 0: no room now;
	 * -EPROTO: the link must close; other negative errno: the peer takes no more,
	 * but may have sent something that is still to be read. */
	ssize_t (*write)(struct link *l, const struct iovec *iov, int n_iov);
	/* Instead of write(), for kinds that send from lent memory: takes bytes from the
	 * front of @seg (which it may change). Return: as write(). What was taken is not
	 * offered again, and done when ... */
	ssize_t (*post)(struct link *l, struct link_seg *seg, int n_seg);
	/* ... this says so. Return: bytes done since the last call. */
	uint64_t (*done)(struct link *l);
	/* Return: bytes moved to @dst (NULL: thrown away); 0: none now; IO_END; another negative
	 * errno: the connection broke. */
	ssize_t (*read)(struct link *l, void *dst, size_t n);
	/* Around each link_progress(). May be NULL. */
	void (*begin)(struct link *l);
	void (*end)(struct link *l);
	/* Prepares for sleep until there is something to read, or (when @want_write)
	 * room to write. Return: false when there already is. */
	bool (*arm)(struct link *l, bool want_read, bool want_write);
	int (*fd)(const struct link *l);
	/* As link_all_fds(); NULL: just fd(). */
	int (*all_fds)(const struct link *l, int *fds, int most);
	short (*poll_events)(const struct link *l, bool want_read, bool want_write);
	/* The sentence for an error of read(); NULL: that of the errno. */
	const char *(*why)(const struct link *l);
	/* As link_lend_gpu(), to where link->lent_gpu says; NULL: -ENOTSUP. */
	int (*lend_gpu)(struct link *l, const struct link_gpu *gpu, uint64_t bytes,
			struct err *err);
	/* As link_register() and link_unregister(); NULL: nothing is needed. */
	int (*register_memory)(struct link *l, const void *base, uint64_t bytes,
			       struct link_memory **ret, struct err *err);
	void (*unregister_memory)(struct link *l, struct link_memory *m);
	bool (*reads)(const struct link *l); /* as link_reads(); NULL: no */
	void (*free)(struct link *l); /* of the kind's struct, which begins with struct link */
};

struct tx_item {
	struct wire_hdr hdr;
	const void *body;
	void *copy; /* owned; on_sent is not called for it */
	uint64_t cookie;
	struct link_memory *memory; /* the body lies there; NULL: elsewhere */
	bool is_gpu, is_offered;
};

enum rx_state {
	RX_HEADER, /* reading a header */
	RX_OFFER,  /* the header goes to on_header, perhaps again after LINK_HOLD */
	RX_BODY,   /* reading the body */
};

struct link {
	const struct link_ops *ops;
	const struct link_events *ev;
	void *owner;
	char peer[LINK_PEER_MAX];

	bool is_closed, is_busy, is_held;
	bool tx_dead;    /* the peer takes no more; reading goes on */
	int closed_code; /* negative errno */
	bool lends_passing;
	bool discards_messages; /* the bodies of MESSAGE frames lie where they cannot be read */
	const void *lent_gpu;   /* what link_send_gpu() sends from; NULL: nothing yet */

	struct tx_item *tx; /* circular, owned */
	uint32_t tx_capacity, tx_first, tx_n;
	uint64_t tx_done;   /* bytes of the first item that are gone */
	uint64_t tx_taken;  /* bytes from the start of the first item that post() took */
	uint64_t tx_queued; /* bytes of all items that are not gone */

	enum rx_state rx_state;
	struct wire_hdr hdr;
	uint64_t rx_got;               /* bytes of the header or body that is being read */
	void *rx_body;                 /* borrowed from the owner, or rx_control, or NULL */
	struct link_memory *rx_memory; /* ... that lies there; NULL: in none that was registered */
	void *rx_control;              /* owned */
	size_t rx_control_bytes;
};

static inline void link_init(struct link *l, const struct link_ops *ops,
			     const struct link_events *ev, void *owner)
{
	l->ops = ops;
	l->ev = ev;
	l->owner = owner;
}

/* Bytes queued that post() was not asked to take, or refused. */
static inline uint64_t link_untaken(const struct link *l)
{
	return l->tx_queued + l->tx_done - l->tx_taken;
}
