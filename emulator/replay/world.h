/* The communicators of a record in another world. */
#pragma once

#include "config/config.h"
#include "engine/record.h"
#include "members/members.h"

/* May the run of @header be played on the layouts of @to? The axes are those of the record, and
 * only data-parallel ones (dp, fsdp, ...) may have another size: with any other, ranks would
 * compute something else. Return: 0; -EINVAL with the sentence. */
int world_check_layouts(const struct record_header *header, const struct config *to,
			struct err *err);
/* Who is in @comm, of a world of @header, in the world of @to. Where that is as large, it is as it
 * was; else the groups of a declared layout are those along the same axes, all ranks are all ranks,
 * ranks of one node stay, and evenly spaced ranks of the whole world go on to its end. Return: 0;
 * -EINVAL with the sentence: none of these; -ENOMEM. */
int world_members(const struct record_comm *comm, const struct record_header *header,
		  const struct config *to, struct members *ret, struct err *err);
