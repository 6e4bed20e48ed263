/* Links: ordered, two-way channels of frames (wire/wire.h) between two
 * processes. Three kinds behind one interface:
 *
 *   shm   two single-producer single-consumer rings in a memfd that is handed
 *         over a unix socket; a byte on the socket wakes a sleeper; its end tells
 *         that the peer died. No name is left in /dev/shm.  "shm:/path/of.sock"
 *         "shm:@name" is an abstract socket: nothing is left even of a killed
 *         process; only processes of the same user may connect.
 *   tcp   a TCP connection with TCP_NODELAY.              "tcp:host:port"
 *         IPv6 in brackets: "tcp:[::1]:port".
 *   rdma  reliable connections of libibverbs (rdma.c).    "rdma:host:port"
 *         "rdma:auto:port" listens at the first active RDMA port (or NBOX_IB_HCA's).
 *
 * A link belongs to one thread and never blocks: the owner calls
 * link_progress() when link_fd() is ready or whenever it polls. libc only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

struct link;
struct link_memory; /* of link_register() */

/* Memory of a GPU (or of whatever else has memory that no CPU should touch): a link gives
 * its address to its own device, and never looks at the bytes itself. */
struct link_gpu_memory {
	void *base; /* as devices address it; a multiple of LINK_GPU_ALIGN, like @bytes */
	uint64_t bytes;
	int dmabuf_fd; /* all of it as a dma-buf, which the link closes; -1: none */
	void *cookie;  /* the owner's */
};
#define LINK_GPU_ALIGN (UINT64_C(64) << 10) /* pages of GPUs as other devices see them */

/* Where it comes from; borrowed until link_free(). Called on the link's thread: alloc()
 * while connecting and in link_lend_gpu(), free() when that failed, or in link_free(). */
struct link_gpu {
	/* Return: 0; negative errno with the sentence. */
	int (*alloc)(uint64_t bytes, struct link_gpu_memory *ret, struct err *err);
	void (*free)(const struct link_gpu_memory *m);
};

/* Called on the owner's thread from inside link_progress(). A callback may call
 * link_send*() on any link, and may not free this one. */
struct link_events {
	/* The header is complete and checked. The callback sets *ret_body to where the body
	 * (hdr->body_bytes, may be 0) shall go, valid until on_frame; NULL: the body is discarded,
	 * not even copied. A control frame, and a BOOT of up to WIRE_CONTROL_MAX, has the link's
	 * own buffer there already: leave it alone. Return: 0; LINK_HOLD: not now; the link reads
	 * nothing more until link_resume(), then calls this again; negative errno: close the link.
	 */
	int (*on_header)(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body);
	/* The body is complete. @body is where on_header put it, the link's own
	 * buffer, or NULL. Return: 0; negative errno: the link is closed. */
	int (*on_frame)(void *owner, struct link *l, const struct wire_hdr *h, const void *body);
	/* The owner may reuse a body that link_send() borrowed. Called once for each link_send(),
	 * in order, also without a body. */
	void (*on_sent)(void *owner, struct link *l, uint64_t cookie);
	/* The peer is gone or sent garbage, or a callback refused a frame; all that
	 * the peer sent before it went was delivered. Once; no callback follows, and
	 * all lent bodies are the owner's again. @code is 0 for an end between frames
	 * (also that of a peer that was killed there), else negative errno. */
	void (*on_closed)(void *owner, struct link *l, int code, const char *why);
};

enum { LINK_HOLD = 1 };

struct link *link_free(struct link *l); /* closes; NULL allowed; returns NULL */

/* Queues a frame. The next link_progress() of this link sends it; inside a callback of this link,
 * the running one. The header is copied. The body is borrowed until on_sent(@cookie); it may be
 * NULL only if body_bytes is 0. Memory of bodies stays mapped as it is until link_free(), but for
 * link_lends_passing() and link_send_from(): rdma keeps it registered, and would send the old pages
 * of memory that was unmapped and mapped again. Return: 0; -EPIPE: the peer takes no more
 * (on_closed was called, or will be after the last received frame); -ENOMEM. */
int link_send(struct link *l, const struct wire_hdr *h, const void *body, uint64_t cookie);
/* The owner lends memory that may be unmapped once it is sent: rdma registers it for each send. */
void link_lends_passing(struct link *l);
/* Memory that many bodies are lent from and that stays as it is until link_unregister(): rdma
 * registers all of it once. *ret is NULL for kinds of links that need nothing. Return: 0; negative
 * errno with the sentence (-ENOMEM: `ulimit -l`), and the link goes on. */
int link_register(struct link *l, const void *base, uint64_t bytes, struct link_memory **ret,
		  struct err *err);
/* All bodies from there were sent; NULL allowed. The thread's last link_free() does it for all. */
void link_unregister(struct link *l, struct link_memory *m);
/* Inside on_header, which says where in @m the body goes: what the peer has offered is read
 * straight to there. NULL is allowed. */
void link_lands_in(struct link *l, struct link_memory *m);
/* Whether bodies that the peer offers are read like that: else they come as others do. */
bool link_reads(const struct link *l);
/* As link_send() of a large body to a peer that said so (link_reads()): its device reads the body,
 * if ours can do that. */
int link_send_offer(struct link *l, const struct wire_hdr *h, const void *body, uint64_t cookie);
/* As link_send() of a body within @m; NULL: of any. */
int link_send_from(struct link *l, const struct wire_hdr *h, const void *body,
		   struct link_memory *m, uint64_t cookie);
/* Whether links of this kind have a device that reaches memory of GPUs. */
bool link_reaches_gpus(const struct link *l);
/* Takes @bytes of @gpu to send from. Once. Return: 0; as link_connect_gpu(). */
int link_lend_gpu(struct link *l, const struct link_gpu *gpu, uint64_t bytes, struct err *err);
/* As link_send() of a MESSAGE from the lent memory of the GPU, from its start, and over again when
 * the body is longer. */
int link_send_gpu(struct link *l, const struct wire_hdr *h, uint64_t cookie);
/* The same as link_send() with the body copied and no on_sent. */
int link_send_copy(struct link *l, const struct wire_hdr *h, const void *body);

/* Moves what can be moved now in both directions, at most a few MiB or some hundred
 * frames. Return: 1 something moved (there may be more); 0 nothing; negative errno:
 * closed (on_closed was called). */
int link_progress(struct link *l);
void link_resume(struct link *l); /* after LINK_HOLD */
uint64_t link_queued_bytes(const struct link *l);

/* To sleep: poll link_fd() for link_poll_events(), but only if link_arm() returned true; false:
 * there is more to do at once. Ask all three before each sleep, in the order link_arm(), link_fd(),
 * link_poll_events(). While a link is held and its peer gone, the descriptor is -1, which poll()
 * ignores; a link that is never held keeps its descriptor for life. The descriptor also becomes
 * ready when there is room for queued frames. After waking, always call link_progress(). */
int link_fd(const struct link *l);
/* All descriptors of the link, for the child of a fork, which must close them so that the
 * peer sees the end of the parent. Return: how many, at most @most. */
int link_all_fds(const struct link *l, int *fds, int most);
short link_poll_events(const struct link *l);
bool link_arm(struct link *l);
const char *link_kind(const struct link *l); /* "shm", "tcp", "rdma" */
const char *link_peer(const struct link *l); /* for log lines */
