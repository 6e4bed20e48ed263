/* A virtual communicator, as the job sees it through its ncclComm_t handle, and one real member of
 * it: us. Reference-counted: the handle, the progress thread from check-in to COMM_FREE, a
 * background init, and each op between arrive and passed hold one. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "shim/edges/behind.h"
#include "shim/gate/device.h"
#include "shim/gate/scratch.h"
#include "shim/progress/note.h"
#include "shim/progress/op.h"
#include "shim/real/nccl-api.h"
#include "topology/template.h"
#include "wire/wire.h"

enum comm_state {
	COMM_STARTING, /* non-blocking init under way */
	COMM_READY,
	COMM_FAILED, /* async error set */
	COMM_DEAD    /* destroyed or aborted */
};

/* A user-made reduction (ncclRedOpCreatePreMulSum). */
struct redop {
	bool is_used, has_real, has_plain, is_scaled;
	uint32_t n_queued; /* calls that use it in a group that has not ended: it outlives
			      ncclRedOpDestroy */
	ncclDataType_t dtype;
	ncclScalarResidence_t residence;
	ncclRedOp_t real;   /* on the real communicator; scalar times our multiplicity ... */
	ncclRedOp_t plain;  /* ... and as it is, for kinds whose policy is not mirror */
	const void *scalar; /* the job's; on the device and with @is_scaled: goes into @scaled
			       before use */
	char *scaled; /* device memory of redop_scratch; captured graphs may use it for good, so the
			 next reduction in this place has it too */
};

#define COMM_LIVE_SLOTS 256 /* a group of many thousand ops has them all live at once */

enum { CHECKIN_IDLE, CHECKIN_SENT, CHECKIN_OK, CHECKIN_FAILED };

struct comm {
	_Atomic uint32_t refs;
	struct comm *hash_next; /* registry of handles, under its lock */
	const struct device *dev;
	int device; /* ordinal that was current at init */

	/* From COMM_READY; constant afterwards. */
	uint32_t number; /* nboxd's */
	uint32_t n_ranks, rank;
	struct wire_comm_ready ready;
	struct wire_member *members; /* owned; the real ones, sorted by rank */
	struct membership map;       /* all of them; its table is owned */
	struct templates templates;  /* by index into @members */
	uint32_t n_real, index;      /* members[index] is us */
	uint32_t multiplicity;       /* ranks whose template we are, ourselves included */
	bool is_even;                /* the same for all members */
	bool is_periodic;            /* rank v has template v mod n_real */
	bool is_full;                /* NCCL itself runs at the virtual size (traffic.h) */
	_Atomic(ncclComm_t) real;    /* of the real members, or of all ranks where it is full; NULL:
					see real-comm.h */
	ncclComm_t real_made;        /* where the real library puts it */
	void *real_config;           /* owned; one real member: for real_comm_get() */
	pthread_mutex_t real_lock;   /* held while @real is made: by threads of the job only, since
					that may wait for gates to open */

	/* State. @why is written before the release-store of @async. */
	_Atomic int state;         /* enum comm_state */
	_Atomic bool is_revoked;   /* by this rank */
	_Atomic bool is_finalized; /* by this rank: over once no op is pending */
	_Atomic int async; /* 0; or why it is dead: negative errno, or (positive) a result of the
			    * real NCCL */
	_Atomic bool is_in_call, is_ending; /* real-call.h */
	_Atomic bool cancelled;             /* abort during a background init */
	char why[ERR_TEXT_MAX];

	struct op_pool pool;

	/* The calling thread's: as in NCCL, the job serializes calls on one communicator. */
	bool is_blocking;
	device_stream last_stream;
	device_event last_event, join_event;
	uint64_t last_capture;
	bool has_last;
	struct edge last_op; /* name 0: none yet */
	struct redop *redops;
	uint32_t n_redops;
	ncclRedOp_t scale_op[ncclNumTypes];         /* real PreMulSum by @multiplicity ... */
	ncclRedOp_t mean_op[ncclNumTypes];          /* ... by multiplicity / n_ranks ... */
	ncclRedOp_t share_op[ncclNumTypes];         /* ... by 1 / n_real */
	uint32_t scale_made, mean_made, share_made; /* one bit a type */
	ncclComm_t self;                      /* one-rank real communicator, for device scalars */
	struct power *captured_powers;        /* data-reduce.c; kept for replays */
	struct scratch scratch, host_scratch; /* on the device; pinned on the host */
	struct scratch redop_scratch;         /* of @redops */
	bool has_graphs;                      /* replays of captured ops use the scratch */
	uint32_t n_splits;
	uint64_t called_seq, called_p2p_seq; /* of the next op: it will arrive with that number, but
						in a graph */
	int64_t own_signals;                 /* that this rank gave itself and has not waited for */

	/* The progress thread's, @checkin, @meet and @local_id under waiters.lock. */
	struct note checkin_note, withdraw_note, kill_note;
	_Atomic bool kill_posted;
	int checkin;
	uint32_t cookie;
	uint16_t checkin_type;
	uint32_t checkin_parent, checkin_rank;
	int checkin_error;
	void *checkin_body; /* owned until sent */
	size_t checkin_bytes;
	struct err checkin_err;
	int meet; /* meet.c */
	bool has_local_id;
	uint8_t local_id[WIRE_ID_BYTES];
	struct comm *next;                /* pending check-ins, then known communicators */
	struct op *live[COMM_LIVE_SLOTS]; /* arrived and not passed, by number */
	uint64_t seq, p2p_seq;            /* of the next collective, point-to-point op */
	_Atomic uint32_t n_pending;       /* ops enqueued and not yet passed */
};

/* Return: NULL when there is no memory. One reference: the handle's. */
struct comm *comm_new(const struct device *dev, int device);
struct comm *comm_ref(struct comm *c);
struct comm *comm_unref(struct comm *c); /* returns NULL */
static inline void comm_unrefp(struct comm **c)
{
	comm_unref(*c);
}
/* In the child of a fork, where the threads that held its locks do not exist. Async-signal-safe
 * enough. */
void comm_in_child(void);

/* The handles of virtual communicators; any other is the real library's own. */
void comm_register(struct comm *c);
/* Return: whether it was there: then the caller has the handle's reference. */
bool comm_unregister(struct comm *c);
/* Return: a reference, so that another thread may abort @handle meanwhile; NULL: not ours. */
struct comm *comm_find(ncclComm_t handle);
static inline ncclComm_t comm_handle(struct comm *c)
{
	return (ncclComm_t)(void *)c;
}

/* Takes what COMM_READY said (wire_body_check() has checked it); @world_ranks: the list, or NULL;
 * @classes: as templates_init() has it; borrowed for good.
 * Return: 0; -ENOMEM with the sentence. */
int comm_set_members(struct comm *c, const struct wire_comm_ready *ready,
		     const struct wire_member *members, const uint32_t *world_ranks,
		     const uint32_t *classes, uint32_t number, struct err *err);

/* Does @c have ops that are enqueued and have not passed? */
static inline bool comm_is_busy(const struct comm *c)
{
	/* acquire: pairs with run_passed() in play.c */
	return atomic_load_explicit(&c->n_pending, memory_order_acquire) != 0;
}

/* The data policy (enum wire_data) for calls of @kind. */
static inline uint32_t comm_data(const struct comm *c, uint32_t kind)
{
	return c->ready.data[kind];
}

/* The index of a real member, or -1. */
int comm_member(const struct comm *c, uint32_t rank);

/* Marks @c dead: @r as c->async, and a sentence; the first one wins. Any thread. Does not open
 * gates: play_kill(). */
void comm_fail(struct comm *c, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static inline int comm_error(const struct comm *c)
{
	/* acquire: pairs with comm_fail(), makes @why visible */
	return atomic_load_explicit(&c->async, memory_order_acquire);
}

/* An op record of @c; NULL: no memory. comm_put_op() frees it where its communicator is dead:
 * captured ops may keep a dead communicator for good. */
struct op *comm_get_op(struct comm *c);
void comm_put_op(struct op *op);

/* From a list by @next. */
void comm_list_remove(struct comm **list, const struct comm *c);
