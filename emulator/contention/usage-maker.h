/* A usage in the making: bytes on links, in any order. */
#pragma once

#include <stdbool.h>

#include "base/number-table.h"
#include "contention/usage.h"

struct usage_maker {
	struct number_table at;   /* of a link: its place + 1 */
	struct usage_link *links; /* owned */
	uint32_t n, capacity;
};

void usage_maker_deinit(struct usage_maker *u);
/* One connection that carries @bytes over the link, none if they are 0; @is_own: of the op itself.
 * Return: 0; -ENOMEM. */
int usage_maker_add(struct usage_maker *u, uint64_t link, double capacity, double bytes,
		    double connections, bool is_own);
/* Return: 0; -ENOMEM. */
int usage_maker_end(struct usage_maker *u, struct usage **ret);
