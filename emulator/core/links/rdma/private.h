/* Inside links/rdma*.c: the structs of the rdma link. See rdma.c for how it works. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "links/kind.h"
#include "links/link.h"
#include "links/rdma/hello.h"
#include "links/rdma/options.h"
#include "links/rdma/state.h"
#include "links/rdma/verbs.h"

#define RDMA_WINDOW 64                     /* pieces under way in one direction; power of two */
#define RDMA_SLOT_BYTES 8192               /* of one SEND, with its piece header */
#define RDMA_CTL 4                         /* SENDs without data that may be under way */
#define RDMA_SQ_SLACK 16                   /* probes and such */
#define RDMA_CTL_FLAG UINT32_C(0x80000000) /* in the immediate: carries no data */
#define RDMA_SEQ_MASK UINT32_C(0x7fffffff)

/* In front of every SEND: what its sender has done with what it got. */
struct rdma_piece {
	uint32_t released; /* low bits of the number of pieces that were read */
	uint32_t ctl_seen; /* control SENDs received on this connection */
};

/* Work request ids: what it is, and its slot (receives) or place in its queue (sends). */
enum rdma_wr { RDMA_WR_RECV = 1, RDMA_WR_DATA, RDMA_WR_CTL, RDMA_WR_PROBE };
#define RDMA_WR_KIND_SHIFT 56 /* below it the index, which never gets that far */
static inline uint64_t rdma_wr_id(enum rdma_wr kind, uint64_t index)
{
	return (uint64_t)kind << RDMA_WR_KIND_SHIFT | index;
}
static inline enum rdma_wr rdma_wr_kind(uint64_t id)
{
	return (enum rdma_wr)(id >> RDMA_WR_KIND_SHIFT);
}
static inline uint64_t rdma_wr_index(uint64_t id)
{
	return id & ((UINT64_C(1) << RDMA_WR_KIND_SHIFT) - 1);
}

/* Registered memory of others, kept for the next time. */
struct rdma_region {
	struct ibv_mr *mr;
	uintptr_t first, last; /* whole pages; last is one behind */
	uint32_t n_users;
	uint64_t used_at;
	struct rdma_region *next;
};

struct rdma_regions {
	struct rdma_region *list;
	uint64_t bytes, turn;
	uint64_t n_hits, n_misses;
};

/* Memory of a GPU, registered. */
struct rdma_gpu {
	const struct link_gpu *from; /* borrowed; NULL: none */
	struct link_gpu_memory mem;
	struct ibv_mr *mr; /* NULL: no memory yet */
};

struct rdma_qp {
	struct ibv_qp *qp; /* owned; NULL: none now */
	struct rdma_link *link;
	struct rdma_qp *next; /* in the device's table */
	uint32_t index;
	uint64_t sq_posted, sq_done; /* work requests, counted from the connection's start */
};

static inline uint64_t rdma_port_bit(uint32_t port)
{
	return port < 64 ? UINT64_C(1) << port : 0;
}

#define RDMA_QP_BUCKETS 256

/* One device as used by one hub. */
struct rdma_dev {
	struct rdma_hub *hub;
	struct ibv_context *ctx; /* owned, so that all of the device's events come here, too */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t cq_entries, cq_used;
	bool is_gone;        /* removed or failed: goes when its last link has */
	uint32_t n_notifies; /* requested and not yet read from the channel */
	enum { NOT_ARMED, ARMED_FOR_PEER, ARMED_FOR_ALL } armed;
	uint64_t ports_down;                  /* bit p: port p, as its events say */
	struct rdma_qp *qps[RDMA_QP_BUCKETS]; /* by number */
	struct rdma_regions regions;
	char name[64];
	struct rdma_dev *next;
};

/* A request that came to a listener and was not accepted yet. */
struct rdma_request {
	struct rdma_cm_id *id;
	uint8_t data[64];
	size_t n_data;
	struct rdma_request *next;
};

/* What the links of one thread share: those that a listener accepted, or one that
 * connected. Event channels, completion queues, a descriptor to sleep on. */
struct rdma_hub {
	const struct verbs *v;
	struct rdma_options options;
	struct rdma_event_channel *cm;
	int epoll_fd, timer_fd;
	int request_fd; /* readable while there are requests */
	uint32_t n_users;
	bool is_armed;   /* somebody may have slept since the last look */
	uint32_t rounds; /* without a look at the descriptors */
	uint64_t look_ns;
	uint64_t ticks; /* seconds, roughly */
	struct rdma_dev *devs;
	struct rdma_link *links;
	struct rdma_request *requests, **last_request;
	const struct rdma_cm_id *listening; /* the listener's, which owns it; NULL: none (now) */
	bool is_removed;                    /* its device, and nobody was told yet */
};

struct rdma_tx {
	uint32_t bytes;    /* of the stream of frames */
	uint64_t sq_index; /* in its queue pair */
	uint8_t qp;
	bool is_lent;               /* from memory of the owner: not done before it is complete */
	struct rdma_region *region; /* in use until it is complete */
	uint64_t ring_end;          /* ring bytes used up to and with this piece */
};

struct rdma_rx {
	bool is_there, is_write;
	uint16_t slot;
	uint32_t bytes;
};

struct rdma_link {
	struct link link;
	struct rdma_hub *hub;
	struct rdma_dev *dev;
	struct rdma_cm_id *id;
	struct rdma_link *prev, *next; /* of the hub */
	enum rdma_state state;
	bool is_blocked; /* the last post() found no room, and nothing has changed since */
	uint64_t state_tick, rx_tick; /* since when; last sign of life */
	int code;                     /* why it ended; 0: the peer went in good order */
	char why[ERR_TEXT_MAX];
	uint32_t port;           /* of the device */
	uint64_t port_down_tick; /* 0: it is up */
	uint32_t n_probes;       /* under way */
	uint32_t n_silent;       /* ticks since a sign of life was asked for */
	struct ibv_wc bad;       /* RDMA_BROKEN: the first completion that says why */
	uint8_t bad_qp;          /* ... of this queue pair, which is named */

	/* Memory: the ring is the peer's to write; slots are for SENDs, both ways. */
	void *area; /* the slots and, if it is the host's, the ring */
	size_t area_bytes;
	struct rdma_gpu ring_gpu; /* the ring, if it is a GPU's */
	struct rdma_gpu lent_gpu; /* what link_send_gpu() sends */
	struct ibv_mr *ring_mr, *slot_mr;
	uint8_t *ring, *rx_slots, *tx_slots;
	uint32_t n_rx_slots, inline_bytes;

	struct rdma_qp qps[RDMA_QPS_MAX];
	uint32_t n_qps;
	struct rdma_hello peer;

	/* Sending; pieces are counted from 0 over the link's life. */
	uint32_t tx_window, tx_slot_bytes;
	uint64_t tx_next, tx_done, tx_freed, tx_released;
	uint64_t tx_ring_sent, tx_ring_freed;
	uint32_t ctl_sent, ctl_acked; /* on this connection */
	struct rdma_tx tx[RDMA_WINDOW];

	/* Receiving. */
	uint64_t rx_next; /* the next piece in order */
	uint64_t rx_read; /* pieces that were read and given back */
	uint64_t rx_told; /* as far as the peer knows */
	uint64_t rx_ring_read, rx_ring_told, rx_ring_got;
	uint32_t rx_offset; /* read of piece rx_read */
	uint32_t ctl_seen, ctl_told;
	struct rdma_rx rx[RDMA_WINDOW];
};

/* --- rdma-hub.c: what the links of a thread share -------------------------------------- */

int rdma_hub_new(const struct rdma_options *o, struct rdma_hub **ret, struct err *err);
void rdma_hub_leave(struct rdma_hub *h); /* the last user frees it */
/* The device of @ctx (librdmacm's) with room for @entries more completions. */
int rdma_hub_device(struct rdma_hub *h, struct ibv_context *ctx, uint32_t entries,
		    struct rdma_dev **ret, struct err *err);
/* Takes completions to their links. Return: whether there were some. */
bool rdma_hub_poll(struct rdma_hub *h);
/* The same for all that has a descriptor: events of connections, devices, the timer. */
void rdma_hub_look(struct rdma_hub *h);
/* A look now and then, always after a sleep. */
void rdma_hub_glance(struct rdma_hub *h);
/* The device was removed: its links end, and it goes when its last link has. */
void rdma_hub_mark_gone(struct rdma_hub *h, const struct ibv_device *device);
/* @fd wakes who sleeps for the hub, and rdma_hub_look() looks at what @tag is. */
int rdma_hub_watch(struct rdma_hub *h, int fd, void *tag);
/* A connection's id, whose events go to @context (NULL: a listener's). Return: 0; negative errno
 * with the sentence. */
int rdma_hub_new_id(struct rdma_hub *h, void *context, struct rdma_cm_id **ret, struct err *err);
void rdma_hub_drop_id(struct rdma_hub *h, struct rdma_cm_id *id);
void rdma_hub_take_request(struct rdma_hub *h, struct rdma_request **ret);
/* Once: whether the device that is listened at was removed. Requests that came over it are
 * dropped. */
bool rdma_hub_take_removal(struct rdma_hub *h);

/* Between ticks; tests make it long, so that no tick hides a lost wake-up. */
extern long rdma_tick_ms;

/* --- rdma-dev.c: a device of a hub ---------------------------------------------------- */

/* Return: 0; negative errno with the sentence. */
int rdma_dev_new(struct rdma_hub *h, struct ibv_device *device, struct rdma_dev **ret,
		 struct err *err);
void rdma_dev_free(struct rdma_dev *d);
/* Room for @entries more completions. Return: 0; negative errno with the sentence. */
int rdma_dev_reserve(struct rdma_dev *d, uint32_t entries, struct err *err);
void rdma_dev_add_qp(struct rdma_dev *d, struct rdma_qp *q);
void rdma_dev_remove_qp(struct rdma_dev *d, struct rdma_qp *q);
/* As rdma_hub_poll(), of this device. */
bool rdma_dev_poll(struct rdma_dev *d);
/* Asks for an event at the next completion: of the peer's solicited pieces, or of any. Return:
 * false: there are completions already. */
bool rdma_dev_arm(struct rdma_dev *d, bool for_all);
void rdma_dev_read_channel(struct rdma_dev *d); /* the events that were asked for */
void rdma_dev_read_events(struct rdma_dev *d);  /* the device's own */

/* --- rdma-region.c: the registration cache --------------------------------------- */

int rdma_region_get(struct rdma_dev *d, const void *p, size_t n, struct rdma_region **ret,
		    struct err *err);
/* Kept, unless the link's memory is of the passing kind (link_lends_passing()). */
void rdma_region_put(struct rdma_link *r, struct rdma_region *g);
void rdma_regions_free(struct rdma_dev *d);
/* What a failed registration means: -ENOMEM is nearly always `ulimit -l`. */
int rdma_memory_error(struct err *err, int code, size_t bytes);

/* --- rdma-gpu.c: memory of a GPU ----------------------------------------------------- */

/* @bytes of @g->from for @access. Return: 0; negative errno with the sentence, which says
 * what was tried. */
int rdma_gpu_get(struct rdma_link *r, struct rdma_gpu *g, uint64_t bytes, int access,
		 struct err *err);
void rdma_gpu_put(struct rdma_link *r, struct rdma_gpu *g);
int rdma_lend_gpu(struct link *l, const struct link_gpu *gpu, uint64_t bytes, struct err *err);

/* --- rdma-qp.c: queue pairs and the memory of a link --------------------------------- */

int rdma_link_setup(struct rdma_link *r, struct err *err);  /* id->verbs is known */
int rdma_link_to_rts(struct rdma_link *r, struct err *err); /* peer is known */
void rdma_link_drop_qps(struct rdma_link *r);
void rdma_link_unset(struct rdma_link *r);
void rdma_link_hello(const struct rdma_link *r, struct rdma_hello *ret);
/* Gives the peer one more receive, into @slot. */
int rdma_repost(struct rdma_link *r, uint16_t slot);

/* --- rdma.c: the link ----------------------------------------------------------------- */

static inline struct rdma_link *rdma_of(const struct link *l)
{
	/* the callers know whether theirs is const */
	return container_of((uintptr_t)l, struct rdma_link, link);
}

static inline uint32_t rdma_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int rdma_link_new(struct rdma_hub *h, const struct link_events *ev, void *owner,
		  struct rdma_link **ret);
void rdma_link_free(struct rdma_link *r);
/* Puts @r into state @s. Return: whether the table of state.c allows it; if not, nothing changes.
 */
bool rdma_set_state(struct rdma_link *r, enum rdma_state s);
/* Ends the link with @code (0: in good order); the sentence begins with device, port,
 * queue pair and peer. The first call counts. */
void rdma_fail(struct rdma_link *r, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* About once a second. */
void rdma_on_tick(struct rdma_link *r);

/* --- rdma-send.c -------------------------------------------------------------------------- */

ssize_t rdma_post(struct link *l, struct link_seg *s, int n_seg); /* see struct link_ops */
uint64_t rdma_done(struct link *l);
bool rdma_has_queue_room(const struct rdma_qp *q);
/* Says how far we have read, if the peer may need to know. */
void rdma_tell(struct rdma_link *r);
/* A WRITE of nothing: completes when the peer's device has answered all before it. */
void rdma_probe(struct rdma_link *r, struct rdma_qp *q);

/* --- rdma-receive.c ----------------------------------------------------------------------- */

ssize_t rdma_read(struct link *l, void *dst, size_t n); /* see struct link_ops */
/* Errors wait: an end in good order looks like one until its event has been read. */
void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc);

/* --- rdma-error.c: what statuses mean and what to do about them ---------------------- */

/* By a completion of queue pair r->bad_qp. */
void rdma_fail_status(struct rdma_link *r, const struct ibv_wc *wc);
int rdma_status_errno(enum ibv_wc_status s);
/* "device rxe0 port 1, QP 17 to rdma:10.0.0.1:4000": of the queue pair that failed, else the first.
 */
char *rdma_name(const struct rdma_link *r, char *buf, size_t size);
void rdma_on_device_event(struct rdma_dev *d, const struct ibv_async_event *e);

/* --- rdma-connect.c: the connection manager --------------------------------------------- */

void rdma_on_cm_event(struct rdma_link *r, const struct rdma_cm_event *e);
/* Accepts or refuses @q, whose id it takes. Return: 0, *ret is the link; negative errno with the
 * sentence: refused, and told why. */
int rdma_accept_request(struct rdma_hub *h, struct rdma_request *q, const struct link_events *ev,
			void *owner, struct link **ret, struct err *err);

/* --- counts, for tests and status ---------------------------------------------------------- */

extern struct rdma_counts {
	_Atomic uint64_t made[5], gone[5];
} rdma_counts;
enum rdma_thing { RDMA_MRS, RDMA_QPS, RDMA_CQS, RDMA_IDS, RDMA_HUBS, RDMA_THINGS };
