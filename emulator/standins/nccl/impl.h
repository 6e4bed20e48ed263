/* Host NCCL's own structures.
 *
 *   caller          api.c  comm-make.c  group.c  job.c   checks, makes communicators and ops
 *   stream's thread op.c                                 runs an op: connects, submits, waits
 *   proxy thread    loop.c  frames.c  run.c  conn.c      all links, all players of the process
 *   root thread     boot-root.c                          one for each ncclGetUniqueId
 *
 * Each file calls only those after it: api comm-make group, job op comm-end, rma, loop, frames, run
 * gather, window, conn, peer, comm, port, proxy, boot boot-root, boot-io, settings, debug.
 *
 * The fields that only the proxy thread may touch are marked. Every other field of a communicator
 * is constant after its start, atomic, or under its lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "base/err.h"
#include "links/link.h"
#include "player/player.h"
#include "schedule/schedule.h"
#include "standins/nccl/boot.h"
#include "standins/nccl/debug.h"
#include "standins/nccl/settings.h"

/* --- communicators ---------------------------------------------------------- */
#define COMM_CANARY UINT64_C(0x6e626f782d636f6d)
#define KEY_RING 0xffffu  /* the control ring's connections */
#define KEY_WATCH 0xfffeu /* carries nothing, but its end */
#define KEY_RMA 0xfffdu   /* what is put, and signals */
#define KEY_P2P 0x8000u   /* | link: connections of sends and receives */
#define P2P_LINKS 4

struct conn;
struct inbox;
struct gather;
struct port;
struct run;

struct peer {
	struct peer_info info;
	bool is_near; /* by shared memory */

	/* under connect_lock: keys of the connections from us to it */
	uint16_t *keys;
	uint32_t n_keys;
	uint64_t n_p2p_sent, n_p2p_received; /* calls, for their numbers */

	uint64_t n_signals, n_waited; /* under lock: came from it; of them, those waited for */

	/* proxy's */
	struct conn *out;
	struct inbox *in;
	bool has_left;        /* it said BYE, aborted, or cannot be reached */
	uint32_t n_in, n_out; /* connections that came from it, and that we opened to it, ever */
	uint64_t n_opened;    /* with has_left: how many it opened to us; UINT64_MAX: not known */
};

struct redop {
	bool in_use;
	enum coll_dtype dtype;
	bool on_device;
	const void *scalar_at;
	uint8_t scalar[8];
};

/* Memory that others may put into; what a handle of a registration points to. */
struct window {
	struct ncclComm *comm;
	struct window *next; /* under lock; only of windows */
	ncclWindow_t *place; /* the caller's, until the group that it is made in ends */
	void *base;
	uint64_t size, number;
	bool is_symmetric;
};

/* How often a communicator was shrunk to the same members; excluded ranks do not count. */
struct shrink_count {
	struct shrink_count *next;
	uint8_t members[16]; /* a hash */
	uint32_t n;
};

struct ncclComm {
	uint64_t canary;
	_Atomic int refs;    /* handle, ops, proxy */
	uint32_t generation; /* proxy_generation() when it was made */
	uint32_t rank, n_ranks;
	int device;
	bool is_blocking;
	uint8_t magic[16];
	struct peer *peers;
	struct port *port;
	struct settings settings; /* rank 0's */
	uint32_t ranks_per_node;

	_Atomic int state; /* ncclResult_t: InProgress while a job runs, or why it failed */
	_Atomic int error; /* ncclResult_t: the asynchronous error */
	_Atomic bool abort;
	_Atomic bool is_finalized;
	_Atomic bool revoked;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	char text[ERR_TEXT_MAX]; /* of the error */
	uint32_t n_jobs;
	int64_t n_outstanding; /* ops that are enqueued and not over */
	uint32_t n_splits;
	struct shrink_count *shrinks;
	struct redop *redops;
	uint32_t n_redops;
	struct window *windows; /* owned, until they are deregistered */
	_Atomic uint64_t n_windows;
	cudaStream_t last_stream; /* of the last op, with has_last */
	cudaEvent_t last_event;
	unsigned long long last_capture; /* 0: none */
	bool has_last;

	pthread_mutex_t connect_lock;

	/* proxy's */
	struct ncclComm *proxy_next;
	bool is_attached, is_failed, is_leaving, is_closed;
	bool is_lost; /* a connection broke; why may arrive until @lost_until_ns */
	uint32_t lost_peer;
	uint64_t lost_until_ns;
	ncclResult_t lost_code;
	char lost_text[ERR_TEXT_MAX];
	struct run *run, *waiting, **waiting_end;
	uint64_t n_colls;
	uint64_t left_until_ns; /* until then connections come from peers that cannot be reached */
	struct gather *gathers;
};

struct ncclComm *comm_get(struct ncclComm *c);
void comm_put(struct ncclComm *c);
/* Notes the first asynchronous error of a communicator. Any thread. */
void comm_set_error(struct ncclComm *c, ncclResult_t code, const char *text);
/* The proxy's: the communicator has failed. The loop closes it. */
void comm_fail(struct ncclComm *c, ncclResult_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* ncclSuccess when @c may be given work. */
ncclResult_t comm_check(const struct ncclComm *c, const char *what);
void comm_outstanding(struct ncclComm *c, int64_t change);

/* --- job.c: the ways to a communicator ---------------------------------------- */
enum job_kind { JOB_INIT, JOB_SPLIT, JOB_SHRINK };

struct job {
	struct job *next;
	enum job_kind kind;
	struct ncclComm *comm;   /* the new one; NULL: split without a color */
	struct ncclComm *parent; /* a reference */
	struct ncclComm **handle;
	struct boot_id id;
	bool has_common_id; /* by NCCL_COMM_ID */
	struct boot_id *others;
	uint32_t n_others;
	int32_t color, key;
	uint32_t number;
	uint32_t *members;
	uint32_t n_members;
	bool must_abort;
	pthread_t thread;
	ncclResult_t result;
};

/* Gives @j the number of its shrink, which is the same at all members, whatever else they made
 * without each other. Return: 0 or -ENOMEM. */
int job_number_shrink(struct job *j);
ncclResult_t job_run(struct job *j); /* frees nothing */
struct job *job_free(struct job *j);
ncclResult_t job_launch(struct job *j); /* for a non-blocking communicator; takes @j */

struct ncclComm *comm_new(uint32_t rank, uint32_t n_ranks, const ncclConfig_t *config);

/* --- conn.c, port.c: connections, posted receives, ports; the proxy's ------------ */
struct post {
	uint64_t seq, index, bytes;
	void *dst;
	uint32_t lane;
};

struct stash { /* a message that came before its receive, while others were due */
	struct stash *next;
	struct wire_hdr hdr;
	bool is_whole;
	uint8_t body[];
};

struct inbox {
	struct inbox *next;
	uint32_t peer;
	uint16_t key;
	struct conn *conn; /* NULL until the peer connected */
	struct post *posts;
	uint32_t n_posts, posts_size;
	struct stash *stash;
};

struct sent {
	uint64_t index;
	uint32_t lane;
};

struct conn {
	struct conn *next;      /* of the process */
	struct conn *peer_next; /* peer.out */
	struct ncclComm *comm;  /* NULL: parked, or left behind to flush */
	struct port *port;      /* where it came in; NULL for ours */
	struct link *link;
	uint32_t peer;
	uint16_t key;
	bool is_parked, is_held, is_dead, is_bye, is_lingering;
	uint64_t until_ns; /* lingering */
	struct wire_conn hello;
	struct inbox *inbox;
	struct stash *filling;
	struct post filling_post;
	bool has_post;
	struct sent *sent; /* a queue of what the link was given */
	uint32_t sent_first, n_sent, sent_size;
	struct gather_record *record; /* body of a BOOT frame */
};

struct gather_record {
	int32_t color, key;
};

/* One exchange of a record among all ranks, over the control ring. */
struct gather {
	struct gather *next;
	uint64_t number;
	struct gather_record *records; /* n_ranks */
	bool *has;
	uint32_t n_has;
	bool is_started;
};

ncclResult_t port_open(const struct sockaddr_in *local, bool has_shm, bool is_ib,
		       struct port **ret);
void port_get(struct port *p);
void port_put(struct port *p);
const char *port_unix_addr(const struct port *p);
const char *port_tcp_addr(const struct port *p);
int port_accept(struct port *p, const struct link_events *events); /* 1: somebody came */
int port_fds(const struct port *p, int ret[2]);

struct inbox *conn_inbox(struct ncclComm *c, uint32_t peer, uint16_t key); /* NULL: no memory */
int conn_post(struct ncclComm *c, struct inbox *in, const struct post *p);
struct conn *conn_out(struct ncclComm *c, uint32_t peer, uint16_t key);
int conn_send(struct conn *k, uint32_t lane, const struct wire_hdr *h, const void *body);
void conn_kill(struct conn *k);
void conn_free(struct conn *k);
void conn_say_abort(struct ncclComm *c, int code, const char *text);
void conn_say_bye(struct conn *k);        /* we leave in good order */
void conn_close_data(struct ncclComm *c); /* at once: nothing may touch the buffers */

/* --- peer.c: peers that leave or are lost; the proxy's -------------------------- */

const char *peer_name(const struct ncclComm *c, uint32_t rank, char buf[128]);
/* Whether @p may still connect to us: it has not left, or it opened more connections than have
 * arrived. */
bool peer_may_connect(const struct ncclComm *c, const struct peer *p);
/* After @peer has left, or one of its connections came or went: fails an op that waits for bytes
 * of @peer which can no longer come. */
void peer_look_for_orphans(struct ncclComm *c, uint32_t peer);
/* @peer has said that it leaves. @n_opened: how many connections it had opened to us. */
void peer_left(struct ncclComm *c, uint32_t peer, uint64_t n_opened);
/* @peer cannot be watched any more: it has left, in good order or not, and may have sent all that
 * we wait for. */
void peer_unwatched(struct ncclComm *c, uint32_t peer);
/* Called at times while an op runs: fails an op that waits for a rank which cannot be reached. */
void peer_look_for_left(struct ncclComm *c);
/* A connection of @peer broke. The communicator fails with @code and @text, unless an abort that
 * explains the loss comes on its control ring within a second. PEER_SILENT: a rank has left and
 * no explanation will come. */
#define PEER_SILENT UINT32_MAX
void peer_lost(struct ncclComm *c, uint32_t peer, ncclResult_t code, const char *text);
/* Called again and again after peer_lost(): fails the communicator once an explanation has come
 * or can no longer come. */
void peer_judge_lost(struct ncclComm *c);

/* --- window.c ------------------------------------------------------------------------ */

void window_add(struct ncclComm *c, struct window *w);
void window_remove(struct ncclComm *c, struct window *w);
/* Whether @at is in a symmetric window. */
bool window_has(struct ncclComm *c, const void *at);
/* Where @bytes at @offset of window @number lie. Return: 0; LINK_HOLD it is not registered yet;
 * -EPROTO there is no such place. */
int window_place(struct ncclComm *c, uint64_t number, uint64_t offset, uint64_t bytes, void **ret);
void window_signal(struct ncclComm *c, uint32_t peer); /* one of @peer's came */

/* --- frames.c: what arrives, and how connections are opened -------------------------- */

extern const struct link_events frame_events;

/* Op threads: makes sure that there is a connection (us -> @peer, @key). */
ncclResult_t conn_open(struct ncclComm *c, uint32_t peer, uint16_t key);
/* Op threads: makes sure that we are told when @peer, which we wait for, leaves. */
ncclResult_t conn_watch(struct ncclComm *c, uint32_t peer);
/* The connections that came before @c was made are given to it. */
void frames_attach(struct ncclComm *c);

/* --- gather.c ------------------------------------------------------------------- */

int gather_start(struct ncclComm *c, uint64_t number, const struct gather_record *mine);
struct gather *gather_find(struct ncclComm *c, uint64_t number);
int gather_received(struct ncclComm *c, uint64_t number, uint32_t origin,
		    const struct gather_record *r);
void gather_drop(struct ncclComm *c, uint64_t number);

/* --- run.c: an op that is being played ----------------------------------------- */
/* A one-sided call. */
enum rma_what { RMA_NONE, RMA_PUT, RMA_SIGNAL, RMA_WAIT };
struct rma {
	enum rma_what what;
	const void *from;
	uint64_t bytes, window, offset;
};

struct op {
	_Atomic int refs;
	struct ncclComm *comm; /* a reference */
	enum coll_kind kind;
	enum coll_dtype dtype;
	enum coll_redop redop;
	bool has_scalar; /* PreMulSum */
	bool is_captured;
	struct redop scalar;
	const void *send;
	void *recv;
	size_t count;
	uint32_t root;
	struct rma rma; /* then @kind is none, @root its peer, @count the signals waited for */
	uint32_t signature;
	struct sched sched;
	struct sched_p2p *p2p; /* owned */
	uint32_t n_p2p;
};

struct run {
	struct run *next;
	struct op *op;
	struct player *player;
	struct player_data data;
	struct sched sched;
	struct sched_p2p *p2p; /* sched_init() completes it; owned by the run's thread */
	uint64_t *p2p_base;    /* number of the first call of this op with each call's peer */
	uint64_t seq;
	uint64_t started_ns;
	bool is_told;
	_Atomic uint32_t done; /* futex; release by the proxy, acquire by the op's thread */
};

void run_submit(struct run *r); /* any thread */
void run_begin(struct ncclComm *c);
bool run_advance(struct ncclComm *c); /* true: a run ended */
void run_fail_all(struct ncclComm *c);
void run_scalar_copy(const struct op *op, void *dst, const void *src, size_t bytes);
void run_data(struct op *op, struct player_data *ret);
void op_describe(const struct op *op, char *buf, size_t size);
void signature_describe(uint16_t flags, char *buf, size_t size);
uint16_t op_flags(const struct op *op);

/* --- rma.c ----------------------------------------------------------------------------- */

ncclResult_t rma_play(const struct op *op);

/* --- proxy.c, loop.c -------------------------------------------------------------------- */
struct request {
	struct request *next;
	void (*fn)(void *arg); /* on the proxy thread */
	void *arg;
	_Atomic uint32_t *done; /* NULL: nobody waits */
	bool is_owned;          /* free() after */
};

#define GONE 4096

struct proxy {
	pthread_mutex_t lock;
	bool is_started;
	struct request *first, **end; /* under lock */
	int wake_fd;
	_Atomic bool is_asleep; /* seq_cst, against the requests that are pushed */
	uint32_t generation;

	/* the proxy thread's own */
	struct conn *conns;
	struct ncclComm *comms;
	struct port_ref {
		struct port_ref *next;
		struct port *port;
	} * ports;
	struct {
		uint8_t magic[16];
		uint32_t rank;
	} gone[GONE];
	uint32_t n_gone;
};

extern struct proxy px;

ncclResult_t proxy_start(void);
/* A forked child has another one: the communicators of its parent are not its own. */
uint32_t proxy_generation(void);
void proxy_call(void (*fn)(void *arg), void *arg); /* waits */
int proxy_post(void (*fn)(void *arg), void *arg);  /* does not */
void proxy_push(struct request *r);
/* The proxy thread only: */
void proxy_add_conn(struct conn *k);
struct ncclComm *proxy_find_comm(const uint8_t magic[16], uint32_t rank, bool *ret_is_gone);
struct conn *proxy_conns(void);
/* Any thread: */
void proxy_attach(struct ncclComm *c);
void proxy_detach(struct ncclComm *c);
void proxy_abort(struct ncclComm *c, const char *text, bool tell);
void proxy_add_port(struct port *p);
void proxy_remove_port(struct port *p);
void futex_wait_done(_Atomic uint32_t *word);
void futex_wake_done(_Atomic uint32_t *word);

/* --- op.c, group.c ---------------------------------------------------------------- */
struct call {
	enum coll_kind kind;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t dtype;
	ncclRedOp_t op;
	struct redop redop; /* of the user's, as it was at the call: a group runs later */
	int root;           /* or the peer of a send or receive */
	bool is_send;
	struct rma rma;
	struct ncclComm *comm;
	cudaStream_t stream;
	const char *name;
};

ncclResult_t op_check(struct call *c);
/* One collective, or the sends and receives of a group. */
ncclResult_t op_enqueue(const struct call *calls, uint32_t n_calls);

ncclResult_t group_start(void);
ncclResult_t group_end(void);
void group_discard(void);
void group_note(ncclResult_t r);         /* an error inside a group comes back at its end */
ncclResult_t group_call(struct call *c); /* checks it; at once, or at the end of the group */
void group_window(struct window *w);     /* made at once, or at the end of the group */
ncclResult_t group_job(struct job *j);   /* takes it; at once, or at the end of the group */
