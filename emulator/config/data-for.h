/* Data policies of single collectives or groups (option data-for): WHAT=POLICY, where
 * WHAT is
 *
 *   allgather       a kind of collective
 *   dp, tp+pp       the communicators along these axes of the declared layout; world:
 *                   those of all ranks, which all axes of a layout together mean, too
 *   dp/allgather    that kind on those
 *
 * The most exact one holds: AXES/KIND, then AXES, then KIND, then the option data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "members/layout.h"
#include "schedule/coll.h"

#define DATA_FOR_AXES_MAX 64

struct data_for {
	uint32_t kind;                /* enum coll_kind; COLL_KINDS: any */
	char axes[DATA_FOR_AXES_MAX]; /* "": any communicator */
	uint32_t data;                /* enum wire_data */
};

/* Return: 0; -EINVAL with the sentence. */
int data_for_parse(const char *text, const struct layout *layouts, size_t n_layouts,
		   struct data_for *ret, struct err *err);
/* Is @text "world", the number of a communicator, or axes of the layouts joined by '+'? Return: 0;
 * -EINVAL with the sentence. */
int data_for_check_axes(const char *text, const struct layout *layouts, size_t n_layouts,
			struct err *err);
/* The policies of a communicator along @axes ("dp", "tp+pp" or ""), by kind. */
void data_for_resolve(const struct data_for *list, size_t n, uint32_t data, const char *axes,
		      bool is_world, uint8_t ret[COLL_KINDS]);
