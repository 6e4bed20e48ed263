/* Which world ranks a communicator has, and how surely that is known: exactly, or by a guess that
 * is flagged. No I/O, no state. README.md has the rules.
 *
 *   members.c   the result; lists that somebody said; shrinks
 *   by-id.c     a communicator made with an id (ncclCommInitRank): its size is known
 *   split.c     one made by ncclCommSplit: color and key of each real rank are known (ballot.c)
 *   split-color.c, color.c   PyTorch's colors, which are hashes of the list of ranks
 *   layout.c, radix.c        the layout that the user declared, and its groups
 *
 * Whatever the source says is checked against what the real members say. */
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
	const uint32_t *classes; /* by world rank (topology/template.h); NULL: there is one */
	bool is_torch;           /* the job was seen to be PyTorch's */
};

/* How the members are known. Records hold these numbers: append only. */
enum members_source {
	MEMBERS_WORLD,    /* all ranks, in order */
	MEMBERS_ALL_REAL, /* every member is real and said its own rank */
	MEMBERS_PARENT,   /* the parent's members without some */
	MEMBERS_COLOR,    /* the split's color is the hash of their list */
	MEMBERS_JOB_LIST, /* the job's own list of ranks */
	MEMBERS_STORE,    /* a key of the job's store names both ranks */
	MEMBERS_LAYOUT,   /* the declared layout has one group that fits */
	MEMBERS_TEMPLATE, /* in a split each virtual rank has its template's color */
	MEMBERS_GUESS,
	MEMBERS_SOURCES
};

/* How surely. Records hold these numbers, too. */
enum members_sure {
	MEMBERS_EXACT,   /* there is no other possibility */
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
void members_sort(struct wire_member *list, size_t n); /* by rank */

/* World ranks of @n_ranks members in order; the list stays the caller's. Return: 0; -ENOMEM. */
int members_from_list(const uint32_t *world_ranks, uint32_t n_ranks, struct members *ret);
/* Takes over @table; drops it when a progression says the same. */
void members_set_table(struct members *m, uint32_t n_ranks, uint32_t *table);
int members_from_radix(const struct radix *r, struct members *ret); /* 0; -ENOMEM */
/* The members with these @ranks of @parent. Return: 0; -ENOMEM. */
int members_of_parent(const struct membership *parent, const uint32_t *ranks, uint32_t n_ranks,
		      struct members *ret);
/* The axes of the declared layout that @m is the group of; 0: of none. */
uint32_t members_axes(const struct cluster *c, const struct membership *m);
/* "tp", "tp+pp"; "" for none. Return: @buf. */
char *members_axes_name(const struct layout *layouts, size_t n_layouts, uint32_t axes, char *buf,
			size_t size);

/* The groups of the declared layouts that @world_rank is in, one a call: *axes is 0 before the
 * first, then says which axes @ret is along. Return: false: there is none left. */
bool cluster_next_group(const struct cluster *c, uint32_t world_rank, uint32_t *axes,
			struct radix *ret);

/* Can a communicator have the ranks of @r? FIT_NO: a known member says otherwise. FIT_LACKS: only
 * if further real ranks come, which are in @r. */
enum fit { FIT_NO, FIT_LACKS, FIT_YES };
enum fit cluster_fit(const struct cluster *c, const struct radix *r,
		     const struct wire_member *known, size_t n_known);

/* Takes the list of world ranks that @source has. @known: the real members, sorted by rank. Return:
 * 0; -EINVAL the list contradicts the known members, with the sentence; -ENOMEM. */
int members_by_list(const struct cluster *c, const uint32_t *world_ranks, uint32_t n_ranks,
		    const struct wire_member *known, size_t n_known, enum members_source source,
		    struct members *ret, struct err *err);

/* Is @m no group of the declared layout, although the layout has a group of its size that fits the
 * real members? Then one of the two is wrong. */
bool members_differ_from_layout(const struct cluster *c, const struct members *m,
				const struct wire_member *known, size_t n_known);

/* The parent's members without @excluded (parent ranks, any order). */
int members_shrink(const struct membership *parent, const uint32_t *excluded, size_t n_excluded,
		   struct members *ret, uint32_t **ret_ranks);

/* The length of the equal runs in which the ranks of a node stand together; 1 when they do not. */
uint32_t members_per_node(const struct membership *m, const struct topology *t);
