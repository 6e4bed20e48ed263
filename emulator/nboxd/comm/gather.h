/* Check-ins of one communicator to be: those with the same 128-byte id (init), the same parent and
 * count (split), or the same parent and excluded ranks (shrink). This file keeps them, and says
 * that one has failed. What frames do to them: gather-frames.h. What they make: gather-complete.h.
 * Members that have not come: gather-missing.h. */
#pragma once

#include "members/by-id.h"
#include "nboxd/comm/comm.h"

struct groups;
struct job_list;
struct loop;
struct players;
struct processes;
struct store_server;

enum gather_kind { GATHER_INIT, GATHER_SPLIT, GATHER_SHRINK };

/* All check-ins that are under way. */
struct gathers {
	struct comms *comms;               /* borrowed, as all that follow */
	struct loop *loop;                 /* looks again at once */
	struct players *players;           /* which worker plays which rank */
	const struct processes *processes; /* whose process has ended */
	struct groups *groups;             /* what the store says of members */
	const struct store_server *store;  /* NULL: no store */
	struct gather *list;               /* owned */
	struct gather *failed;             /* owned; members that come later are told why */
	uint32_t n, n_failed;
};

struct gather {
	struct gathers *gathers; /* borrowed */
	enum gather_kind kind;
	uint8_t id[WIRE_ID_BYTES]; /* init */
	uint32_t parent, count;    /* split, shrink */
	uint32_t n_ranks;          /* init: as given; else the parent's */
	struct job_list *lists;    /* owned: what the job itself says of members */
	uint32_t *excluded;        /* shrink; owned */
	uint32_t n_excluded;
	struct comm_entry *entries; /* owned, sorted by rank */
	uint32_t n, n_wanted;       /* shrink and split: known; init: at most */
	uint64_t first_ns, last_ns, warn_ns;
	int code; /* not 0: it has failed, @last_ns ago, and @why: is on the other list */
	char why[WIRE_TEXT_MAX];
	struct gather *prev, *next;
};

/* What a check-in is for. */
struct gather_wanted {
	enum gather_kind kind;
	const uint8_t *id;      /* init */
	uint32_t n_ranks, rank; /* init */
	uint32_t parent;        /* split, shrink */
	uint32_t count;         /* split */
	uint32_t n_excluded;    /* shrink */
	const void *excluded;   /* shrink: ranks of the parent, perhaps unaligned */
	uint32_t world_rank;
};

extern const char *const gather_kind_names[];

/* NULL: too many, or no memory. */
struct gather *gather_new(struct gathers *gs, enum gather_kind kind);
void gather_free(struct gather *g);
void gathers_deinit(struct gathers *gs);
/* NULL: there is none. */
struct gather *gather_find(struct gathers *gs, const struct gather_wanted *wanted);
/* Keeps the order by rank. Return: 0; -EEXIST this rank was here; -ENOMEM. */
int gather_add(struct gather *g, const struct comm_entry *entry);
/* Has @world_rank checked in? */
bool gather_has(const struct gather *g, uint32_t world_rank);
/* Does a shrink exclude just these ranks? */
bool gather_excludes_same(const struct gather *g, const struct gather_wanted *wanted);
/* Whether a shrink leaves @rank of the parent out. */
bool gather_is_excluded(const struct gather *g, uint32_t rank);
/* A real member that has to come to the split or shrink and is played by @w (NULL: its
 * worker is gone). */
const struct comm_member *gather_awaited_member(const struct gather *g, const struct comm *parent,
						const struct worker *w);

/* All that have checked in are told why, and so are members that come later. @g is not to be used
 * any more. */
void gather_fail(struct gather *g, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Have the others failed already? Then @entry is told. */
bool gather_has_failed(struct gathers *gs, const struct gather_wanted *wanted,
		       const struct comm_entry *entry);
/* ABORT instead of COMM_READY, to one that checked in. */
void gather_tell_failed(struct worker *w, uint32_t cookie, int code, const char *why);
