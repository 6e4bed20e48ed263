/* The record of a run: what its file holds, as structs, and how it lies there. RECORD.md describes
 * it. Needs nothing else of nbox: it is installed as nbox-record.h, for programs of others. In nbox
 * record-write.h makes the file and record-read.h reads it.
 *
 * Wall times are nanoseconds of nboxd's monotonic clock; virtual times, those of the virtual
 * cluster, share its zero; plain ones are virtual times as they would be without what-ifs. 0: not
 * known. A new field goes behind the others, before the lengths of the lists. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little-endian"
#endif

#define RECORD_NOTES \
	"notes.txt" /* beside it, where workers had something to say of the run: a line each */
#define RECORD_ABORTS                                                                            \
	"aborts.txt" /* beside it, where communicators were aborted: a line each, the first ones \
		      */
#define RECORD_ENDS \
	"ends.txt" /* beside it, where workers failed or vanished: a line each, the first ones */

struct record_header {
	uint32_t world_size, n_nodes, gpus_per_node, n_real;
	uint32_t exchange, data; /* enum wire_exchange, enum wire_data */
	uint64_t seed;
	uint64_t start_ns;      /* monotonic clock of the daemon */
	uint64_t start_unix_ns; /* wall clock of the same moment */
	char model[512];        /* terminated; model and what-ifs */
	char layout[256];       /* terminated; declared layouts, separated by ';' */
	char data_for[256];     /* terminated; exceptions from data: dp=fill, separated by ';' */
	char retimed_of[256];   /* terminated; the run whose wall times these are, played again on
				   this world; "": it is a run */
	uint64_t n_warm_up;     /* of a re-timed run: first steps that the recorded one left out */
	uint32_t nccl, unused;  /* enum wire_nccl: whose messages its ops had */
};

/* The last row, written anew with each write. */
struct record_end {
	uint64_t n_lost;         /* ops that could not be written: the last ones of the run */
	uint64_t clock_error_ns; /* the most that the clock of a worker on another host may have
				    been wrong by in an op; 0: all have nboxd's */
	uint32_t n_lost_notes;   /* lines of the text files beside it that could not be written */
	uint32_t lost_errno; /* why the first of them or of the ops could not; 0: nothing is lost */
	uint64_t n_debts;    /* ends of ops that moved when the rank had gone on */
	uint64_t debt_ns;    /* by how much in all; its later times have moved as much */
};

struct record_member {
	uint32_t rank, world_rank;
};

/* A communicator, before its first op. How its members are known: members/members.h. */
struct record_comm {
	uint32_t number, parent; /* parent 0: none */
	uint32_t n_ranks;
	uint32_t base, stride;       /* world rank = base + rank * stride, unless listed */
	uint32_t source, sure, axes; /* enum members_source, enum members_sure; of the layout */
	uint32_t n_members, n_real;
	const uint32_t *members;          /* world ranks, by rank; n_members is n_ranks, or 0 */
	const struct record_member *real; /* those with a process */
};

/* What a point or an op waited for: the latest point or op that lies before it on a stream. */
struct record_dep {
	uint64_t name;
	uint32_t is_same_stream, unused;
};

/* One point-to-point call of an op. */
struct record_call {
	uint32_t peer, is_send;
	uint64_t bytes;
};

/* RECORD_OF_MODEL: the model said how long the whole op takes; else that follows from the messages
 * of the algorithm. RECORD_NO_EDGES: the worker does not see the job's events; it is taken to wait
 * for the op before it. */
enum {
	RECORD_REPLAYED = 2, /* of a captured graph */
	RECORD_BELOW_BOUND = 4,
	RECORD_OF_MODEL = 8,
	RECORD_NO_EDGES = 16,
	RECORD_FAR_ABOVE = 32, /* of 64 MiB or more, and longer than twice the bound */
	RECORD_NO_PROCESS =
		64, /* its rank has none here: its gate opened in another run (--with) */
	/* with the what-if xmesh: a resharding step with a plan's times; what it moves was assumed;
	 * not as declared, and left alone */
	RECORD_PLANNED = 128,
	RECORD_PLAN_ASSUMED = 256,
	RECORD_LEFT_ALONE = 512,
	RECORD_ONESIDED = 1024, /* its sends are puts, its receives waits for signals */
	/* an all-to-all by the matrix of --alltoall; one that does not match, and is left alone */
	RECORD_BY_MATRIX = 2048,
	RECORD_NOT_BY_MATRIX = 4096
};

/* One op of one real rank, once it is over. */
struct record_op {
	uint64_t number;     /* of the op in the run */
	uint64_t seq;        /* of the op in its communicator; SendRecv: of this rank's own */
	uint64_t name, host; /* name: in deps; host: of the host point before the call; 0: none */
	uint64_t bytes, count;
	uint64_t call_ns;       /* wall: when the job called it */
	uint64_t arrive_ns;     /* wall: this rank's own arrival */
	uint64_t start_ns;      /* wall: end less what the op takes, never before arrive_ns */
	uint64_t due_ns;        /* wall: when the gate was to open */
	uint64_t release_ns;    /* wall: when it really opened */
	uint64_t local_done_ns; /* wall: real op among the real members was over; 0 unknown */
	uint64_t virtual_arrive_ns, virtual_end_ns;
	uint64_t plain_arrive_ns, plain_end_ns;
	double model_ns;     /* what the model says that it takes */
	double injected_ns;  /* what what-ifs added to that */
	uint64_t n_messages; /* that crossed the link for this rank */
	uint32_t comm, rank, world_rank, stream;
	uint32_t kind, dtype, redop, root, algo;
	uint32_t how;        /* enum solve_how */
	uint32_t flags;      /* RECORD_* */
	uint32_t waited_for; /* world rank that came last, where waited_ns is not 0 */
	uint64_t exposed_ns; /* what the op's own stream, where it computes, waited before it */
	uint64_t work_ns;    /* wall: its stream's first work since its last op or point; 0: none */
	uint64_t order;      /* of its arrival among all points and arrivals, as nboxd took them */
	uint64_t done_order; /* how many of them had come when nboxd learnt of release_ns */
	double shared_ns;    /* virtual: what it waited for links that other ops used */
	double queued_ns;    /* virtual: for ops of its communicator before it, at this rank */
	double waited_ns;    /* virtual: for the last rank that it needs, where that arrived once it
			      * could begin here */
	/* What NCCL itself took for a collective, where it told (nccl full), in its numbers:
	 * enum plugin_algorithm, enum plugin_protocol; took_channels 0: it did not */
	uint32_t took_algorithm, took_protocol, took_channels, unused;
	uint32_t n_deps, n_calls;
	const struct record_dep *deps;
	const struct record_call *calls;
	const struct record_comm *of; /* the reader's; the writer ignores it */
};

enum record_point_kind { RECORD_POINT_STREAM, RECORD_POINT_HOST, RECORD_POINT_KINDS };

/* One point of a real rank's timeline: wire/wire.h, struct wire_point. */
struct record_point {
	uint64_t name, host;
	uint64_t call_ns;    /* wall */
	uint64_t time_ns;    /* wall: reached, or returned */
	uint64_t virtual_ns; /* the same in virtual time */
	uint64_t plain_ns;
	uint64_t exposed_ns; /* what this rank's computation waited for communication here */
	uint32_t world_rank, stream;
	uint32_t kind; /* enum record_point_kind */
	uint32_t is_host_bound;
	uint64_t work_ns; /* wall: its stream's first work since its last op or point; 0: none */
	uint64_t order;   /* see struct record_op */
	uint32_t n_deps;
	const struct record_dep *deps;
};

/* --- the file -------------------------------------------------------------------------------- */

/* The file begins with a skippable frame of zstd that holds the name and version. */
#define RECORD_MAGIC "\x50\x2a\x4d\x18\x08\0\0\0nboxrec2"
#define RECORD_MAGIC_BYTES (sizeof(RECORD_MAGIC) - 1)
#define RECORD_VERSION_AT (RECORD_MAGIC_BYTES - 1)

#define RECORD_FRAME_MAX (UINT32_C(16) << 20) /* bytes that a frame unpacks to, at most */

#define RECORD_WORLD_MAX (UINT32_C(1) << 20)

enum record_kind {
	RECORD_HEADER = 1,
	RECORD_END,
	RECORD_COMM,
	RECORD_OP,
	RECORD_POINT,
	RECORD_JOB,
};

/* A row: this, the fields, the lists. Both, and each list, are filled up to a multiple of 8. */
struct record_row {
	uint32_t kind;  /* enum record_kind */
	uint32_t bytes; /* of the whole row */
	uint32_t fields_bytes;
	uint32_t n_lists;
};

struct record_list {
	uint32_t n, entry_bytes;
};

/* The fields that a file holds of each struct: all before its lists. */
#define RECORD_COMM_BYTES offsetof(struct record_comm, n_members)
#define RECORD_OP_BYTES offsetof(struct record_op, n_deps)
#define RECORD_POINT_BYTES offsetof(struct record_point, n_deps)

static inline uint32_t record_padded(uint64_t bytes)
{
	return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}
