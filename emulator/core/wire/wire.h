/* Frames between a worker process and nboxd, and between the ranks of the stand-in NCCL: a fixed
 * header and a body. Native byte order: both ends are x86-64 or arm64, and the magic would show
 * another order. No I/O: encode, decode, check. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WIRE_MAGIC 0x786f626eu /* "nbox" */
#define WIRE_VERSION 17
#define WIRE_TOKEN_BYTES 32
#define WIRE_ID_BYTES 128 /* ncclUniqueId */

/* hdr.comm of an ABORT for a communicator without a number: nboxd refuses a COMM_INIT, SPLIT or
 * SHRINK, or a worker takes an unanswered one back. hdr.seq is then the cookie. Numbers of
 * communicators count from 1. */
#define WIRE_NO_COMM UINT32_MAX

/* Set in hdr.seq of ops of point-to-point calls (COLL_SENDRECV). Sending and receiving
 * is not collective: a member counts these ops for itself, from 0, and the collectives
 * beside them; only the numbers of collectives mean the same op at all members. */
#define WIRE_SEQ_P2P (UINT64_C(1) << 63)
/* The number without that bit: for people. */
static inline unsigned long long wire_seq_number(uint64_t seq)
{
	return seq & ~WIRE_SEQ_P2P;
}

enum wire_type {
	WIRE_HELLO = 1,   /* w->d struct wire_hello: first frame of every link */
	WIRE_WELCOME,     /* d->w struct wire_welcome */
	WIRE_COMM_INIT,   /* w->d struct wire_comm_init (+ n_ranks x uint32 world ranks) */
	WIRE_COMM_READY,  /* d->w struct wire_comm_ready + n_real x struct wire_member (+ n_ranks x
			     uint32 world ranks) */
	WIRE_COMM_SPLIT,  /* w->d struct wire_comm_split (+ n x uint32 world ranks); answered by
			     COMM_READY */
	WIRE_COMM_SHRINK, /* w->d struct wire_comm_shrink + n x uint32 excluded ranks */
	WIRE_COMM_FREE,   /* w->d empty body; hdr.comm */
	WIRE_LOCAL_ID,    /* w->d and d->w: WIRE_ID_BYTES, id of the real members' own comm; zero:
			     there will be none */
	WIRE_ARRIVE,      /* w->d struct wire_arrive (+ n_p2p x struct wire_p2p + n_deps x struct
			     wire_dep) */
	WIRE_MESSAGE,     /* both: one message of an op; body = its bytes (payload) or none */
	WIRE_RELEASE,     /* d->w struct wire_release: when the op ends */
	WIRE_DONE,        /* w->d struct wire_done: the op as the worker saw it */
	WIRE_ABORT,       /* both: struct wire_text: this communicator is dead */
	WIRE_ERROR,       /* d->w struct wire_text: this link is dead, and why */
	WIRE_PING,        /* w->d struct wire_ping, echoed with the daemon's clock */
	WIRE_STATUS,      /* c->d empty; answered by a JSON text body */
	WIRE_BYE,  /* w->d: the process ends, and its exit handlers run; hdr.seq is its exit code */
	WIRE_CONN, /* host NCCL: struct wire_conn, first frame of a connection */
	WIRE_BOOT, /* host NCCL: bootstrap exchange, body defined there */
	WIRE_GROUP, /* w->d struct wire_group + n_ranks x uint32 world ranks */
	WIRE_NOTE,  /* w->d struct wire_text: for the summary: a warning, unless it begins as below
		     */
	WIRE_MEET,  /* w->d empty: this member will go into the real init; d->w: all will */
	WIRE_POINT, /* w->d struct wire_point + n_deps x struct wire_dep; hdr.rank is a world rank
		     */
	WIRE_JOB,   /* w->d before COMM_INIT: what its ops are decided by: the version of its NCCL
		     * ("2.28.9"; "": not known), then NCCL's variables, NAME=VALUE; each text ends
		     * with a zero */
	WIRE_MOVE,  /* d->w struct wire_move: when an op ends that was told of by RELEASE; of no
		     * meaning once its gate is open */
	WIRE_CLASSES, /* d->w before WELCOME, where there are several: uint32 class of each world
			 rank */
	WIRE_FLOW, /* w->d struct wire_flow: messages that NCCL's own proxy will send to hdr.peer in
		    * an op, or receive from it, on channel hdr.lane; before the first of them */
	WIRE_WANT, /* w->d empty: NCCL's proxy has posted the receive of message hdr.index of a flow
		    */
	WIRE_TOOK, /* w->d struct wire_took: of an op that has arrived WIRE_ARRIVE_UNDECIDED */
	WIRE_TUNE, /* w->d struct wire_tune: what is NCCL to take? d->w: the same with the answer */
	WIRE_TYPE_END
};
/* How a note begins that is no warning. */
#define WIRE_NOTE_PAYLOAD \
	"payload memory: "            /* where bodies lay in exchange payload over rdma, and why */
#define WIRE_NOTE_NO_GPU "no GPU: "   /* what stands in for one */
#define WIRE_NOTE_VERSION "version: " /* for versions.txt: "version: torch 2.11.0" */
#define WIRE_NOTE_DECIDED "decided by: " /* nboxd's own: what a scheduler decides ops by */
/* nboxd's own, of NCCL's own messages: what NCCL took for each kind of op; how many there were */
#define WIRE_NOTE_TOOK "NCCL took: "
#define WIRE_NOTE_TRAFFIC "NCCL's messages: "

/* An nboxd that its own workers started, over shm, has an address that begins so. A worker that
 * said BYE there waits until the link is closed. */
#define WIRE_ADDR_JOINED "shm:@nbox-raw-"

const char *wire_type_name(uint32_t type); /* "?" for unknown ones */

/* 48 bytes. Fields that a type does not use are zero. */
struct wire_hdr {
	uint32_t magic;
	uint16_t version;
	uint16_t type;       /* enum wire_type */
	uint64_t body_bytes; /* at most WIRE_BODY_MAX */
	uint64_t seq;        /* number of the op in its communicator, from 0; WIRE_SEQ_P2P */
	uint64_t index;      /* MESSAGE: number of the message on its connection */
	uint32_t comm;       /* the daemon's number of the communicator */
	uint32_t rank;       /* comm rank of the real rank that the frame is of/for */
	uint32_t peer;       /* MESSAGE: comm rank at the other end */
	uint16_t lane;       /* MESSAGE: lane of the schedule; of NCCL's own: the channel */
	uint16_t flags;      /* MESSAGE: WIRE_MESSAGE_...; FLOW: WIRE_FLOW_... */
};
_Static_assert(sizeof(struct wire_hdr) == 48, "wire header is 48 bytes");

/* d->w, of NCCL's own messages: no real rank's data have come into it. Its bytes mean nothing, and
 * stand for the element that changes no result. */
#define WIRE_MESSAGE_IDENTITY 1
/* A receive whose buffer is registered with the link: the body may be one that the worker's device
 * reads from where it lies (link_send_offer()). */
#define WIRE_FLOW_READS 1

#define WIRE_BODY_MAX (UINT64_C(1) << 32)
#define WIRE_CONTROL_MAX (UINT64_C(1) << 22) /* every type but MESSAGE, BOOT */
/* NCCL's own messages are shorter: 1 or 2 of the 8 steps of a connection's buffer, whose offset in
 * the connection's memory has 29 bits (transport/net.cc, 2.23 to 2.30). */
#define WIRE_NCCL_MESSAGE_MAX (UINT64_C(1) << 27)

/* Bounds of a checked body. This room knows the words of schedule/ by number only; test-body.c
 * proves that the numbers agree. */
#define WIRE_KINDS 9         /* COLL_KINDS */
#define WIRE_KIND_SENDRECV 8 /* COLL_SENDRECV */
#define WIRE_KINDS_TUNED 5   /* COLL_ALLREDUCE to COLL_REDUCE */
#define WIRE_DTYPES 12       /* COLL_DTYPES */
#define WIRE_ALGOS 4         /* SCHED_ALGOS */
#define WIRE_CHANNELS_MAX 1024
#define WIRE_NCCL_DIRECT 7                         /* sends and receives; PLUGIN_N_ALGORITHMS */
#define WIRE_NCCL_ALGORITHMS 8                     /* enum plugin_algorithm, and that */
#define WIRE_NCCL_PROTOCOLS 3                      /* PLUGIN_N_PROTOCOLS */
#define WIRE_FLOW_MESSAGES_MAX (UINT64_C(1) << 26) /* a bit each is kept */
#define WIRE_WORLD_MAX UINT32_C(65536)             /* ranks of the largest world */
#define WIRE_COUNT_MAX (UINT64_C(1) << 40)         /* elements, or bytes of one p2p call */

/* Fills magic, version, type and body_bytes; zeroes the rest. */
void wire_hdr_init(struct wire_hdr *h, enum wire_type type, uint64_t body_bytes);
/* Return: 0 or -EPROTO with the sentence in @err. */
int wire_hdr_check(const struct wire_hdr *h, struct err *err);

enum wire_exchange { EXCHANGE_NONE, EXCHANGE_MESSAGES, EXCHANGE_PAYLOAD };
/* Whose messages an op has. GATE: nbox's schedules, and the real NCCL knows real ranks alone. FULL:
 * NCCL's own, at the virtual size; exchange says whether they have bodies (payload) or not
 * (messages), ARRIVE, RELEASE and DONE are as with exchange none. */
enum wire_nccl { NCCL_GATE, NCCL_FULL };
enum wire_data { DATA_MIRROR, DATA_FILL, DATA_IDENTITY, DATA_NONE };
const char *wire_exchange_name(uint32_t e);
const char *wire_nccl_name(uint32_t n);
const char *wire_data_name(uint32_t d);
int wire_data_parse(const char *name, uint32_t *ret, struct err *err);

/* Payload over tcp runs over two connections, one a direction, because bodies both ways on one
 * socket slow each other down (1.4 times on loopback). So does payload into memory of a GPU, into
 * which nothing else may be written. The second connection says HELLO with role BACK and is
 * welcomed like the first. From then on it carries all MESSAGE frames towards the worker, and
 * nothing else. */
enum wire_role { WIRE_ROLE_WORKER, WIRE_ROLE_CLIENT, WIRE_ROLE_BACK, WIRE_ROLES };

struct wire_hello {
	uint8_t token[WIRE_TOKEN_BYTES]; /* zero-padded */
	uint64_t now_ns;                 /* sender's clock */
	uint8_t clock_id[16];            /* equal: one clock (clock_id()) */
	uint32_t pid;
	uint32_t role;   /* enum wire_role */
	char host[64];   /* terminated */
	uint32_t worker; /* WIRE_ROLE_BACK: number from that worker's WELCOME */
	uint32_t reserved;
};

struct wire_welcome {
	uint64_t now_ns; /* daemon's clock */
	uint32_t worker; /* number of this worker process */
	uint32_t world;  /* ranks of the virtual world */
	uint32_t n_nodes, gpus_per_node;
	uint32_t n_real;
	uint32_t exchange;     /* enum wire_exchange */
	uint32_t data;         /* enum wire_data; COMM_READY has each communicator's */
	uint32_t same_clock;   /* 1: the worker's clock is the daemon's */
	uint32_t wants_groups; /* 1: tell by GROUP what groups the job has */
	uint32_t nccl;         /* enum wire_nccl */
	uint32_t tunes;        /* 1: a decision file says what NCCL is to take: ask by TUNE */
	uint32_t unused;
};

/* A group of the job, by the name that is part of its keys in the store. The world ranks follow, in
 * the order of the group. */
#define WIRE_GROUP_NAME_MAX 124
struct wire_group {
	char name[WIRE_GROUP_NAME_MAX]; /* terminated, not empty */
	uint32_t n_ranks;
};

/* The list of world ranks follows where the job gave it, in the order of the ranks. */
struct wire_comm_init {
	uint8_t id[WIRE_ID_BYTES];
	uint32_t n_ranks, rank; /* as the caller gave them */
	uint32_t world_rank;
	uint32_t cookie; /* comes back in COMM_READY */
};

struct wire_comm_split {
	uint32_t parent; /* also hdr.comm */
	uint32_t rank;   /* in the parent */
	int32_t color, key;
	uint32_t cookie;
	uint32_t count; /* how many splits of this parent came before */
};

struct wire_comm_shrink {
	uint32_t parent, rank, cookie, n_excluded;
};

struct wire_member {
	uint32_t rank; /* in this communicator */
	uint32_t world_rank;
};

/* hdr.comm is the new number; color NOCOLOR gives n_ranks 0. */
struct wire_comm_ready {
	uint32_t cookie;
	uint32_t n_ranks, rank;
	uint32_t n_real; /* members that follow, sorted by rank */
	uint32_t gpus_per_node;
	uint32_t is_guess;       /* 1: virtual members were guessed, see the record */
	uint32_t ranks_per_node; /* of the schedule; 1 when irregular */
	uint32_t channels;
	uint32_t base, stride; /* world rank = base + rank * stride, unless the list follows */
	uint64_t chunk_bytes;
	uint8_t algo[16]; /* enum sched_algo for each coll_kind */
	uint8_t data[16]; /* enum wire_data for each coll_kind */
};

/* What NCCL itself takes for a collective, as its profiler tells. */
struct wire_took {
	uint32_t algorithm;  /* enum plugin_algorithm */
	uint32_t protocol;   /* enum plugin_protocol */
	uint32_t n_channels; /* 0: it does not tell */
	uint32_t unused;
};

/* NCCL's tuner asks of all communicators of a shape, where only real ranks are asked: so the answer
 * follows from what stands here, and is the same for all. */
struct wire_tune {
	uint32_t n_ranks, n_nodes;
	uint32_t kind; /* enum coll_kind, of those that NCCL's tuner hears of */
	/* the answer; 0: the file does not say: channels that the communicator has */
	uint32_t n_of_comm;
	uint64_t bytes;        /* of the larger of a rank's buffers */
	struct wire_took took; /* the answer for an op; n_channels 0: the file does not say */
};

/* One op, as the call gave it: sizes are NCCL's own (count as passed). */
struct wire_arrive {
	uint64_t arrive_ns; /* in the daemon's clock */
	uint64_t count;
	uint32_t kind;  /* enum coll_kind */
	uint32_t dtype; /* enum coll_dtype */
	uint32_t redop;
	uint32_t root;
	uint32_t n_p2p; /* entries that follow, COLL_SENDRECV only */
	uint32_t flags; /* WIRE_ARRIVE_* */
	uint64_t name;  /* see struct wire_point, whose fields these are */
	uint64_t call_ns, work_ns, host;
	uint32_t stream;
	uint32_t n_deps; /* struct wire_dep that follow the point-to-point calls */
	struct wire_took took;
};
/* REPLAYED: from a captured graph. NO_EDGES: the worker does not see the job's events; the deps are
 * the member's last op. UNDECIDED: NCCL has not told yet what it takes, or that it takes nothing:
 * TOOK follows, and nobody may ask a model of the op before. */
enum {
	WIRE_ARRIVE_REPLAYED = 1,
	WIRE_ARRIVE_NO_EDGES = 2,
	WIRE_ARRIVE_ONESIDED = 4,
	WIRE_ARRIVE_UNDECIDED = 8
};

/* A point of a rank's timeline: an op's arrival, a place in a stream that the device has reached,
 * or the return of a call that made the host wait. Each has a name, a number that the worker gives
 * out; point and op share the numbers, 0 is none. An op or point of a captured graph keeps its name
 * in every replay, and means the last one then (WIRE_NAME_CAPTURED). What a point waited for are
 * the latest points and ops, one a stream, that come before it: they have arrived or passed before,
 * and nboxd was told of them before. The time between them and the point is computation, unless the
 * host was the bound: then the call that enqueued it, at call_ns, came only just before. Before
 * work_ns the stream had nothing to do. */
#define WIRE_NAME_CAPTURED (UINT64_C(1) << 63)
#define WIRE_DEPS_MAX 64
struct wire_dep {
	uint64_t name;
	uint32_t is_same_stream; /* it lies before the point on the point's own stream */
	uint32_t unused;
};

enum wire_point_kind { WIRE_POINT_STREAM, WIRE_POINT_HOST, WIRE_POINT_KINDS };

struct wire_point {
	uint64_t name;
	uint64_t time_ns; /* in the daemon's clock: reached, or returned */
	uint64_t call_ns; /* when the job made the call that it stands for; 0: in a graph */
	uint64_t
		work_ns; /* when the stream got its first work since its last point; 0: none seen */
	uint64_t host;   /* the last host point before that call; 0: none */
	uint32_t kind;   /* enum wire_point_kind */
	uint32_t stream; /* the worker's number of the stream; HOST: 0 */
	uint32_t n_deps;
	uint32_t unused;
};

#define WIRE_SIGNAL_BYTES 8 /* of a signal without data */

/* ONESIDED: sends are puts and signals; receives wait for one each, whose bytes only its sender
 * knows: 0. */
struct wire_p2p {
	uint32_t peer;
	uint32_t is_send;
	uint64_t bytes;
};

/* Sent as soon as the end is known. The worker opens the gate when all its
 * messages are in and this time has come, never earlier. */
/* Entries that fit a frame, whatever the deps. */
#define WIRE_P2P_MAX                                      \
	((WIRE_CONTROL_MAX - sizeof(struct wire_arrive) - \
	  WIRE_DEPS_MAX * sizeof(struct wire_dep)) /      \
	 sizeof(struct wire_p2p))

struct wire_release {
	uint64_t start_ns, end_ns; /* daemon's clock */
	uint64_t number;           /* of the op in the run */
	uint64_t n_messages;       /* ONESIDED: so many come, of all that it waits for */
};

/* hdr.comm, rank, peer, seq, lane say of what. */
struct wire_flow {
	uint32_t is_send;
	uint32_t algorithm;     /* enum plugin_algorithm, or WIRE_NCCL_DIRECT */
	uint32_t protocol;      /* enum plugin_protocol */
	uint32_t n_channels;    /* of the op */
	uint64_t n_messages;    /* at least 1 */
	uint64_t message_bytes; /* none has more; at most WIRE_NCCL_MESSAGE_MAX */
};

struct wire_move {
	uint64_t end_ns; /* daemon's clock */
};

struct wire_done {
	uint64_t clock_error_ns; /* of the worker's idea of the daemon's clock, at most; 0: one
				    clock */
	uint64_t local_done_ns, release_ns, due_ns; /* daemon's clock */
	uint64_t n_sent, n_received;                /* messages */
};

struct wire_ping {
	uint64_t worker_ns, daemon_ns;
};

#define WIRE_TEXT_MAX 512
struct wire_text {
	int32_t code;             /* positive errno */
	char text[WIRE_TEXT_MAX]; /* terminated */
};

struct wire_conn {
	uint8_t magic[16]; /* of the communicator */
	uint32_t src, dst; /* ranks */
	uint32_t lane;
	uint32_t n_ranks;
};

/* Checks a whole control frame: type, body size, inner counts, terminated
 * strings, enum ranges, ranks below their n_ranks, sorted members. Every
 * receiver calls it before it looks at a body. @body needs no alignment; NULL
 * when body_bytes is 0. Bodies of MESSAGE and BOOT are their owners' business
 * and pass. Return: 0 or -EPROTO with the sentence. Fuzzed. */
int wire_body_check(const struct wire_hdr *h, const void *body, struct err *err);
