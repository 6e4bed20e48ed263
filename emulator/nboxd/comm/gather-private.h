/* Check-ins of one communicator to be: shared by gather*.c, told.c and resolve.c, not for others.
 */
#pragma once

#include "members/by-id.h"
#include "nboxd/comm/comm.h"

enum gather_kind { GATHER_INIT, GATHER_SPLIT, GATHER_SHRINK };

/* A list of world ranks that the job has: of the whole gather (init), or of a color. */
struct told {
	struct told *next;
	int32_t color;
	uint32_t by; /* the rank that said it first */
	uint32_t n;
	uint32_t world_ranks[];
};

struct gather {
	struct server *server; /* borrowed */
	enum gather_kind kind;
	uint8_t id[WIRE_ID_BYTES]; /* init */
	uint32_t parent, count;    /* split, shrink */
	uint32_t n_ranks;          /* init: as given; else the parent's */
	struct told *told;         /* owned list */
	uint32_t *excluded;        /* shrink; owned */
	uint32_t n_excluded;
	struct comm_entry *entries; /* owned, sorted by rank */
	uint32_t n, n_wanted;       /* shrink and split: known; init: at most */
	uint64_t first_ns, last_ns, warn_ns;
	int code; /* not 0: it has failed, @last_ns ago, and @why: is on the other list */
	char why[WIRE_TEXT_MAX];
	struct gather *prev, *next;
};

/* --- gather.c: check-ins --------------------------------------------------------------- */

extern const char *const gather_kind_names[];

/* All who checked in are told, and those who still come to it are; it is not to be used any more.
 */
void gather_fail(struct gather *g, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void gather_free(struct gather *g);
/* Has @world_rank checked in? */
bool gather_has(const struct gather *g, uint32_t world_rank);
/* ABORT instead of COMM_READY, to one who checked in. */
void gather_tell_failed(struct worker *w, uint32_t cookie, int code, const char *why);

/* --- gather-complete.c: what they make ------------------------------------------------- */

/* Return: whether an init is complete (or failed) and freed. */
bool gather_init_complete(struct gather *g, enum members_patience patience);
/* All have come: the communicators are made, or everybody is told why not; the gather is freed. */
void gather_split_complete(struct gather *g, const struct comm *parent);
void gather_shrink_complete(struct gather *g, const struct comm *parent);

/* --- gather-missing.c: who has not come -------------------------------------------------- */

/* Whether a shrink leaves @rank of the parent out. */
bool gather_is_excluded(const uint32_t *excluded, uint32_t n, uint32_t rank);
/* A real member that has to come to the split or shrink and is played by @w (NULL: by
 * nobody any more). */
const struct comm_member *gather_awaited_member(const struct gather *g, const struct comm *parent,
						const struct worker *w);

/* --- told.c: what the job itself says ------------------------------------------------- */

/* Keeps the list that follows the body of a check-in; one that contradicts an earlier one is
 * a warning, and neither counts. Return: 0; -ENOMEM. */
int told_add(struct gather *g, int32_t color, uint32_t rank, const void *list, uint64_t n_bytes);
void told_free(struct told *t);
/* The list for @color, or NULL. */
const struct told *told_find(const struct gather *g, int32_t color);
/* Are all real ranks of @t among the gather's entries? */
bool told_all_here(const struct gather *g, const struct told *t);
/**
 * told_split - the members of @color by the job's list
 *
 * Return: 0; TOLD_NOTHING: no list, or one that contradicts the votes (a warning);
 * -ENOMEM.
 */
enum { TOLD_NOTHING = 1 };
int told_split(const struct gather *g, const struct comm *parent, int32_t color,
	       struct members *ret, uint32_t **ret_ranks);

/* --- resolve.c: who the members are ------------------------------------------------ */

/* As members_by_id(), with all that nboxd knows besides the check-ins. */
int resolve_init(const struct gather *g, enum members_patience patience, struct members *ret,
		 struct err *err);
