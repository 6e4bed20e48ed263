/* Which world ranks a communicator has: known for the real members, found out for the
 * virtual ones, and how surely. Pure functions, no I/O.
 *
 *   members.c   the result itself; shrinks
 *   infer.c     a communicator made with an id (ncclCommInitRank): number of ranks known
 *   split.c     one made by ncclCommSplit: color and key of each real rank known
 *   color.c     PyTorch's colors, which are hashes of the list of ranks
 *   layout.c    what the user declared
 *
 * Every source is checked against what the real members say; ../README.md has the rules. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "members/layout.h"
#include "topology/membership.h"
#include "topology/topology.h"
#include "wire/wire.h"

struct cluster { /* borrowed facts */
	const struct topology *topology;
	const uint32_t *real; /* world ranks, sorted */
	size_t n_real;
	const struct layout *layouts;
	size_t n_layouts;
	bool is_torch;     /* the job was seen to be PyTorch's */
	bool ranks_matter; /* a what-if names ranks: their nodes are not all that counts */
};

/* How the members are known; the last two guess unless nothing is virtual. Numbers are
 * in the record: append only. */
enum members_source {
	MEMBERS_WORLD,    /* all ranks, in order */
	MEMBERS_ALL_REAL, /* each said it itself */
	MEMBERS_PARENT,   /* the parent's, without some */
	MEMBERS_COLOR,    /* the split's color is the hash of their list */
	MEMBERS_TOLD,     /* the job's own list of ranks */
	MEMBERS_STORE,    /* a key of the job's store names both ranks */
	MEMBERS_LAYOUT,   /* the declared layout has one group that fits */
	MEMBERS_STRIDE,   /* a regular group that fits all real ranks' check-ins; never exact */
	MEMBERS_TEMPLATE, /* virtual ranks' colors were taken from real ones */
	MEMBERS_GUESS,
	MEMBERS_SOURCES
};

enum members_sure {
	MEMBERS_EXACT,  /* there is no other possibility */
	MEMBERS_PLACED, /* which node each rank shares with which is certain (MEMBERS_STRIDE: if the
			 * job's groups are those of a grid): all that timing depends on */
	MEMBERS_GUESSED, /* flagged in record and summary */
};

struct members {
	struct membership map; /* map.table points to table, or is NULL */
	uint32_t *table;       /* owned; NULL when base and stride say it all */
	enum members_source source;
	enum members_sure sure;
	uint32_t axes; /* of the declared layout (number << 8 | bits); 0: none */
};

const char *members_source_name(uint32_t source); /* "?" for unknown ones */
const char *members_sure_name(uint32_t sure);
void members_deinit(struct members *m);
int cluster_is_real(const struct cluster *c, uint32_t world_rank);

/* World ranks of @n_ranks members in order; the list stays the caller's. Return: 0; -ENOMEM. */
int members_from_list(const uint32_t *world_ranks, uint32_t n_ranks, struct members *ret);
int members_from_radix(const struct radix *r, struct members *ret);
/* Do these two share nodes alike: is every pair of ranks on one node in both or in
 * none? For ranks that ascend. */
bool members_same_place(const struct topology *t, const struct radix *a, const struct radix *b);
/* The axes of the declared layout that @m is the group of; 0: of none. */
uint32_t members_axes(const struct cluster *c, const struct membership *m);
/* "tp", "tp+pp"; "" for none. Return: @buf. */
char *members_axes_name(const struct layout *layouts, size_t n_layouts, uint32_t axes, char *buf,
			size_t size);

/* MEMBERS_WAIT: what the known members say fits only with real ranks that have not
 * come yet. */
enum { MEMBERS_WAIT = 1 };

/* How long the check-ins have paused: not at all (only what the layout makes certain
 * is answered), for a while (siblings that have not come are waited for), for long. */
enum members_patience { MEMBERS_AT_ONCE, MEMBERS_SETTLED, MEMBERS_NOW };

/**
 * members_infer - who takes part in a communicator of @n_ranks
 * @known: the real members, sorted by rank, without doubles
 * @seen: the check-ins of all real ranks at communicators of @n_ranks, sorted by world
 *        rank and rank (members_sort_seen()): siblings of this one
 *
 * All known: exact. A communicator of the world's size: rank = world rank. Else the
 * groups of the layout that fit, else the regular groups (radix.h) that fit: those
 * through the known members, without another real rank, and of which the other real
 * ranks have checked in at the sibling groups. A regular group is PLACED at best, and so when it is
 * the only one or all that fit share nodes alike; what none fits is guessed, as is what siblings do
 * not yet bear out, and what there is no other real rank to bear out.
 *
 * Return: 0; MEMBERS_WAIT; -EINVAL with the sentence; -ENOMEM.
 */
int members_infer(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, const struct wire_member *seen, size_t n_seen,
		  enum members_patience patience, struct members *ret, struct err *err);
void members_sort_seen(struct wire_member *seen, size_t n);

/* The same when somebody said the list of world ranks. Return: 0; -EINVAL it contradicts
 * the known members, with the sentence; -ENOMEM. */
int members_told(const struct cluster *c, const uint32_t *world_ranks, uint32_t n_ranks,
		 const struct wire_member *known, size_t n_known, enum members_source source,
		 struct members *ret, struct err *err);

/* Is @m no group of the declared layout, although the layout has one of its size that fits
 * all that real members say? Then one of both is wrong. */
bool members_differ_from_layout(const struct cluster *c, const struct members *m,
				const struct wire_member *known, size_t n_known);

enum split_policy { SPLIT_TEMPLATE, SPLIT_SAME, SPLIT_NODE };

/* What a real member of the parent said in a split. */
struct split_vote {
	uint32_t rank; /* in the parent */
	int32_t color, key;
};

/**
 * members_split - the members of the communicator of @color
 * @votes: all real members of the parent, sorted by rank
 * @ret_ranks: the parent ranks of the members, in the order of the new ranks; the
 *             caller's to free()
 * @warning: a sentence when sources contradict each other; else ""
 *
 * A list of ranks whose hash is the color is exact. Else the layout's groups that
 * fit all votes: exact when one fits and not every voter could be alone in its group. Else a
 * virtual rank votes as @policy says; its key is its template's, shifted by the difference of their
 * ranks. Colors that are the lowest rank of their group (PyTorch 2.11 on) are a case of their own.
 *
 * Return: 0; -ENOMEM.
 */
int members_split(const struct cluster *c, const struct membership *parent,
		  const struct split_vote *votes, size_t n_votes, enum split_policy policy,
		  int32_t color, struct members *ret, uint32_t **ret_ranks, struct err *warning);

/* The parent's members without @excluded (parent ranks, any order). */
int members_shrink(const struct membership *parent, const uint32_t *excluded, size_t n_excluded,
		   struct members *ret, uint32_t **ret_ranks);

/* Ranks of a node stand together in equal runs of this length; 1 when they do not. */
uint32_t members_per_node(const struct membership *m, const struct topology *t);
