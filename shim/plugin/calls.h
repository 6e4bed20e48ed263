/* The communicators of NCCL that are nbox's, and the calls that each of them is about to get
 * (plugin.h): NCCL's events are matched with them. Any thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "shim/plugin/plugin.h"

/* What a handle of an event is: NCCL hands them back. */
enum handle_kind { HANDLE_NONE, HANDLE_GROUP, HANDLE_CALL, HANDLE_FLOW, HANDLE_STEP };

/* A call, as NCCL runs it. */
struct call {
	enum handle_kind kind; /* HANDLE_CALL */
	struct bound *of;
	struct plugin_call is;
	uint32_t algorithm, protocol, n_channels; /* as in struct wire_flow */
	/* private */
	uint64_t bytes;
	struct call *next;             /* of those of its bucket, then of those that have begun */
	struct call *newer, **to_self; /* of those that are expected */
};

#define CALL_BUCKETS 1024 /* of 2^n; by what a call is */
struct call_list {
	struct call *first, **last;
};

struct flow;
struct kept;
/* One of nbox's communicators as NCCL knows it. */
struct bound {
	struct comm *comm; /* a reference */
	char name[16];     /* in NCCL's config: "nbox-" and its number */
	/* private */
	struct bound *next; /* under the lock of all, as: */
	uint32_t users;     /* plugin_bind(), and each bound_use(); the last one frees */
	bool has_number;
	uint64_t number;      /* NCCL's, once it has told it */
	pthread_mutex_t lock; /* of what follows */
	struct call_list expected[CALL_BUCKETS];
	struct call *oldest, **newest; /* of the expected */
	uint32_t n_expected;
	struct call_list begun;
	uint32_t n_begun;
	struct call *free_calls;
	struct flow *free_flows;
	struct kept *kept;
	_Atomic uint64_t passed[2]; /* numbers of collectives and others that are over, at most */
};

/* How NCCL names a communicator: by a number that it makes of the id, and tells with its first
 * event. */
struct named {
	uint64_t number;
	uint32_t rank, n_ranks; /* n_ranks 0: not told */
	uint32_t ours; /* nboxd's number, of the name that plugin_bind() gave; 0: not told */
};
uint32_t plugin_number(const char *name); /* NULL is allowed */
struct call_event;
/* Which one that is. A new number is that of the only communicator of this size and rank that has
 * none so far, or of the first that expects the call of @e. NULL: none, or it shows with a later
 * event. @e NULL: NCCL makes the communicator. It stays until bound_drop(): where several ranks are
 * in one process, NCCL's proxy may outlive ncclCommDestroy. */
struct bound *bound_use(const struct named *n, const struct call_event *e);
/* Is there one whose number is not known, and may be this one? */
bool bound_may_be(const struct named *n);
void bound_drop(struct bound *b); /* NULL is allowed */
/* Memory that is freed with @b; under its lock. NULL: there is none. */
void *bound_alloc(struct bound *b, size_t bytes);
/* Op @seq of @c is over, and so are those before it. */
void calls_passed(struct comm *c, uint64_t seq);

/* What an event says. */
struct call_event {
	uint32_t kind; /* enum coll_kind, of collectives; COLL_SENDRECV */
	bool is_send;
	const void *send;
	void *recv;
	uint64_t count;
	const char *dtype; /* "ncclFloat32"; others: not known */
	uint32_t root;     /* or peer */
};
/* NCCL's name of an ncclDataType_t; NULL: it has none. */
const char *call_dtype_name(uint32_t dtype);
/* The first expected call that it fits is taken; it stays valid for at least as long as its op is
 * under way, and another thousand calls. NULL: there is none. */
struct call *call_match(struct bound *b, const struct call_event *e);
/* What NCCL takes for it is known: its op hears of that. */
void call_told(struct call *c);
/* For a call of a communicator that has failed: of no op. NULL: no memory. */
struct call *call_stray(struct bound *b, const struct call_event *e);
