/* The communicators of a record in another world. */
#pragma once

#include "config/config.h"
#include "engine/record.h"
#include "members/members.h"

/* How the ranks of a cluster are laid out. */
struct world {
	uint32_t size, n_nodes;
	struct layout layouts[CONFIG_LAYOUTS_MAX];
	size_t n_layouts;
};

/* Return: 0; -EINVAL with the sentence: the layout is none. */
int world_of_record(const struct record_header *header, struct world *ret, struct err *err);
void world_of_config(const struct config *config, struct world *ret);
/* May a run of @from be played on @to? The axes are those of the record, and only data-parallel
 * ones (dp, fsdp, ...) may have another size: with any other, ranks would compute something else.
 * Return: 0; -EINVAL with the sentence. */
int world_check(const struct world *from, const struct world *to, struct err *err);
/* The rank of @to that computes what @rank of @from does: with a layout, that of the same
 * coordinates, else that of the same number. Return: -1: there is none. */
int64_t world_rank(const struct world *from, const struct world *to, uint32_t rank);
/* Who is in @comm, of @from, in the world @to. Where that is as large and laid out alike, it is as
 * it was; else the groups of a declared layout are those along the same axes, all ranks are all
 * ranks, ranks of one node stay, and evenly spaced ranks of the whole world go on to its end.
 * Return: 0; -EINVAL with the sentence: none of these; -ENOMEM. */
int world_members(const struct record_comm *comm, const struct world *from, const struct world *to,
		  struct members *ret, struct err *err);
