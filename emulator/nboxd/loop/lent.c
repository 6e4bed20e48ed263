/* See lent.h. */
#include "nboxd/loop/lent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 64

int lent_reserve(struct lent *l)
{
	uint32_t capacity = l->capacity ? 2 * l->capacity : CAPACITY_MIN;
	uint64_t *more;

	if (l->n < l->capacity)
		return 0;
	more = malloc(capacity * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		more[i] = l->cookies[(l->first + i) % l->capacity];
	free(l->cookies);
	*l = (struct lent){.cookies = more, .n = l->n, .capacity = capacity};
	return 0;
}

void lent_add(struct lent *l, uint64_t cookie)
{
	assert(l->n < l->capacity);
	l->cookies[(l->first + l->n++) % l->capacity] = cookie;
}

uint64_t lent_take(struct lent *l)
{
	uint64_t cookie = l->cookies[l->first];

	assert(l->n);
	l->first = (l->first + 1) % l->capacity;
	l->n--;
	return cookie;
}

void lent_deinit(struct lent *l)
{
	free(l->cookies);
}
