/* See computed.h. A list is a path of a tree: ranks part where they first differ. */
#include "nbox/replay/computed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STRETCHES_MAX (UINT32_C(1) << 22)
#define ALIKE_NS 0.5 /* as timelines fold ranks */

int computed_init(struct computed *c, uint32_t world, struct err *err)
{
	*c = (struct computed){.world = world, .of = calloc((size_t)world + 1, sizeof(*c->of))};
	return c->of ? 0 : err_set(err, ENOMEM, "out of memory");
}

void computed_deinit(struct computed *c)
{
	free(c->of);
	free(c->stretches);
	number_table_deinit(&c->known);
	*c = (struct computed){.n = 0};
}

static uint64_t hash_of(const struct computed_stretch *s)
{
	uint64_t bits, h;

	memcpy(&bits, &s->ns, sizeof(bits));
	h = (bits ^ s->number) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 29 ^ s->before) * UINT64_C(0xbf58476d1ce4e5b9);
	return (h ^ h >> 32) | 1;
}

static int add(struct computed *c, const struct computed_stretch *s, struct err *err)
{
	if (c->n + 1 >= STRETCHES_MAX)
		return err_set(err, E2BIG,
			       "what-ifs make more than %u million stretches of computation "
			       "otherwise than each other: nbox retime has no such bound",
			       STRETCHES_MAX >> 20);
	if (c->n + 1 >= c->capacity) {
		uint32_t capacity = c->capacity ? 2 * c->capacity : 64;
		struct computed_stretch *grown = realloc(c->stretches, capacity * sizeof(*grown));

		if (!grown)
			return err_set(err, ENOMEM, "out of memory");
		c->stretches = grown;
		c->capacity = capacity;
	}
	c->stretches[++c->n] = *s;
	return 0;
}

int computed_told(void *ctx, uint32_t world_rank, uint64_t number, double was_ns, double ns,
		  struct err *err)
{
	struct computed *c = ctx;
	const struct computed_stretch s = {c->of[world_rank], ns, number};
	int r;

	if (fabs(ns - was_ns) < ALIKE_NS)
		return 0;
	for (uint64_t key = hash_of(&s);; key += 2) {
		uint32_t *known = number_table_at(&c->known, key ? key : 1);
		const struct computed_stretch *k = known && *known ? &c->stretches[*known] : NULL;

		if (!known)
			return err_set(err, ENOMEM, "out of memory");
		if (k && (k->before != s.before || k->number != number || k->ns != ns))
			continue;
		r = k ? 0 : add(c, &s, err);
		if (r == 0)
			c->of[world_rank] = *known = k ? *known : c->n;
		return r;
	}
}

bool computed_differs(const struct computed *c)
{
	return c->n > 0;
}

void computed_apply(const struct computed *c, uint32_t world_rank, double *ns, uint64_t n)
{
	for (uint32_t i = c->of[world_rank]; i; i = c->stretches[i].before)
		if (c->stretches[i].number < n)
			ns[c->stretches[i].number] = c->stretches[i].ns;
}
