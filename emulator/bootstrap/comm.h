/* A communicator: its ranks, which of them are real, and what was heard of these. */
#pragma once

#include "bootstrap/conn.h"

#define COMM_BARRIERS_MAX 4
#define COMM_NO_MEMBER UINT32_MAX

struct bootstrap {
	const struct bootstrap_sink *sink;
	void *ctx;
	int (*magic)(void *ctx, uint64_t *ret);
	struct bootstrap_comm *comms; /* owned */
	struct bootstrap_conn *loose; /* owned: connections of no communicator */
};

/* A real rank. */
struct member {
	uint32_t rank;
	bool has_checked_in; /* or given its ring's address in a split */
	bool has_rung;       /* both connections of its ring are made */
	bool has_contact;
	bool has_left;
	uint8_t ring_address[NCCL_ADDRESS_BYTES]; /* where its prev connects to */
	uint8_t peer_address[NCCL_ADDRESS_BYTES]; /* for messages */
	struct bootstrap_conn *next, *prev;       /* the ring's; NULL: not yet, or gone */
	uint32_t n_begun;                         /* all-gathers it has begun */
	uint32_t n_barrier_sends[COMM_BARRIERS_MAX];
	struct bootstrap_comm *child; /* that it is about to join */
	uint32_t child_member;        /* its number there */
	uint32_t child_next;          /* the rank (here) that is next to it there */
};

/* An all-gather that is under way. */
struct gather {
	struct gather *prev, *next;
	uint32_t number;
	enum gather_kind {
		GATHER_CONTACT,
		GATHER_PEER,
		GATHER_GRAPH,
		GATHER_SPLIT,
		GATHER_COPIED
	} kind;
	uint32_t contact; /* which of them; of a split, which of its all-gathers */
	uint32_t bytes;   /* of a record */
	uint8_t *records; /* owned: [n_real][bytes] */
	uint32_t n_given; /* records that are whole */
	bool is_ready;    /* all are, and what virtual ranks give is known */
	uint32_t n_streams_left;
	/* owned: of a split, [n_ranks]; what all vote */
	int32_t *color, *key;
};

struct bootstrap_comm {
	struct bootstrap_comm *prev, *next;
	struct bootstrap *all;
	const struct nccl_records *records;
	struct rewrite_places places; /* node and template are owned */
	uint32_t *node, *template;    /* owned; the same */
	uint32_t *member_of;          /* owned: [n_ranks]; COMM_NO_MEMBER: virtual */
	struct member *members;       /* owned: [n_real] */
	uint32_t n_real;
	uint64_t *magics; /* owned: [n_roots]; the first is the communicator's */
	uint32_t n_roots;
	bool has_magic;
	uint32_t door;                 /* tells it from others with its magic */
	bool is_over;                  /* failed, or all real ranks have left */
	struct bootstrap_comm *parent; /* while not all of its members have rung */
	struct bootstrap_conn *conns;  /* owned */
	uint32_t n_conns;
	uint8_t near[NCCL_ADDRESS_BYTES], far[NCCL_ADDRESS_BYTES];
	uint8_t *real;  /* owned: [n_real][NCCL_ADDRESS_BYTES]; NULL: not asked for yet */
	uint32_t stage; /* of init: contacts, peer, graph */
	uint32_t n_gathers;
	struct gather *gathers; /* owned */
	int32_t *color;         /* owned: [n_ranks]; votes whose keys come in the next all-gather */
	uint32_t n_barriers[COMM_BARRIERS_MAX]; /* answered */
	uint64_t transports;
};

/* A communicator without magics. @node, @template: taken over where it works. */
int comm_make(struct bootstrap *all, const struct nccl_records *records, uint32_t n_ranks,
	      uint32_t *node, uint32_t *template, struct bootstrap_comm **ret, struct err *err);
void bootstrap_comm_free(struct bootstrap_comm *comm);
/* NULL: none with this magic at that door. */
struct bootstrap_comm *bootstrap_comm_find(struct bootstrap *all, uint64_t magic, uint32_t door);
/* Likewise, of a root; *ret_root: which. */
struct bootstrap_comm *comm_find_root(struct bootstrap *all, uint64_t magic, uint32_t *ret_root);
uint32_t comm_ranks(const struct bootstrap_comm *comm);
uint64_t comm_magic(const struct bootstrap_comm *comm);
/* NULL: a virtual rank, or none. */
struct member *comm_real_member(const struct bootstrap_comm *comm, int64_t rank);
uint32_t comm_member_number(const struct bootstrap_comm *comm, const struct member *m);
/* Has init ended, so that ranks may leave? */
bool comm_is_made(const struct bootstrap_comm *comm);
/* Hangs up all connections and tells the sink. Once; later calls do nothing. */
void comm_fail(struct bootstrap_comm *comm, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void comm_no_memory(struct bootstrap_comm *comm);
/* All real ranks have left. */
void comm_over(struct bootstrap_comm *comm);
/* @c belongs to @comm from now on. Return: 0; -EMFILE: too many, @comm has failed. */
int comm_attach(struct bootstrap_comm *comm, struct bootstrap_conn *c);
/* A connection to member @m, whose hello is in its queue. NULL: @comm has failed. */
struct bootstrap_conn *comm_dial_begin(struct bootstrap_comm *comm, const struct conn_kind *kind,
				       const struct member *m, uint64_t magic);
/* Opens it, once there is in its queue what it begins with. Return: 0; -1: @comm has failed. */
int comm_dial(struct bootstrap_comm *comm, struct bootstrap_conn *c,
	      const uint8_t address[NCCL_ADDRESS_BYTES]);
