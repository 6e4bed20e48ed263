/* How many elements the ops of a record have in another world, and whom its sends go to. */
#pragma once

#include "replay/declared.h"
#include "replay/law.h"
#include "replay/sizes.h"
#include "replay/world.h"
#include "schedule/coll.h"

enum counts_how {
	COUNTS_ASSUMED,  /* from one record, as the kind of op has it */
	COUNTS_FITTED,   /* to records of several sizes */
	COUNTS_BEYOND,   /* the same, outside these sizes, by a law of two free numbers, or anywhere
			    by one that explains the two nearest sizes alone, or where an axis of
			    the layout changes that has one size in all records */
	COUNTS_DECLARED, /* by the user */
	COUNTS_HOWS
};

/* Of ops that have another size than in the record, or whose communicator has. */
struct counts_told {
	uint64_t n[COUNTS_HOWS][COLL_KINDS][LAW_KINDS];
};

/* All borrowed. */
struct counts_ask {
	const struct record *rec;
	const struct world *from, *to;
	const struct membership *maps;          /* in the new world; by communicator of @rec */
	const struct sizes *sizes;              /* NULL: there is one record */
	const struct declared_counts *declared; /* NULL: nothing is */
};

/**
 * counts_change - the ops in the new world
 * @out: its ops are those of the record; count, root and calls become those of the new world. Lists
 *       are kept in it
 *
 * Return: 0; -EINVAL with the sentence: the record does not say; -ENOMEM.
 */
int counts_change(const struct counts_ask *ask, struct record *out, struct counts_told *told,
		  struct err *err);
