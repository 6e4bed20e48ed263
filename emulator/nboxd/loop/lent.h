/* Bodies that a link has been lent, in the order in which it gives them back. */
#pragma once

#include <stdint.h>

struct lent {
	struct lent_body {
		uint64_t cookie, bytes;
	} * bodies; /* owned; a ring */
	uint32_t first, n, capacity;
	uint64_t bytes; /* of all */
};

/* Room for one more. Return: 0; -ENOMEM. */
int lent_reserve(struct lent *l);
void lent_add(struct lent *l, uint64_t cookie, uint64_t bytes); /* after lent_reserve() */
uint64_t lent_take(struct lent *l);                             /* the oldest; there is one */
void lent_deinit(struct lent *l);
