/* What the user says of counts in communicators that change their size. */
#pragma once

#include "base/err.h"
#include "schedule/coll.h"

struct declared_counts {
	uint8_t law[COLL_KINDS]; /* enum law_kind; LAW_NONE: nothing */
};

/* "alltoall=total,sendrecv=keep", added to @ret: keep, total (all ranks together have as much), or
 * grow (with the ranks). alltoall: groups of sends and receives to all ranks, too. Return: 0;
 * -EINVAL with the sentence. */
int declared_parse(const char *text, struct declared_counts *ret, struct err *err);
