/* See lent.h. */
#include "nboxd/loop/lent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 64

int lent_reserve(struct lent *l)
{
	uint32_t capacity = l->capacity ? 2 * l->capacity : CAPACITY_MIN;
	struct lent_body *more;

	if (l->n < l->capacity)
		return 0;
	more = malloc(capacity * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		more[i] = l->bodies[(l->first + i) % l->capacity];
	free(l->bodies);
	l->bodies = more;
	l->first = 0;
	l->capacity = capacity;
	return 0;
}

void lent_add(struct lent *l, uint64_t cookie, uint64_t bytes)
{
	assert(l->n < l->capacity);
	l->bodies[(l->first + l->n++) % l->capacity] = (struct lent_body){cookie, bytes};
	l->bytes += bytes;
}

uint64_t lent_take(struct lent *l)
{
	struct lent_body body = l->bodies[l->first];

	assert(l->n);
	l->bytes -= body.bytes;
	l->first = (l->first + 1) % l->capacity;
	l->n--;
	return body.cookie;
}

void lent_deinit(struct lent *l)
{
	free(l->bodies);
}
