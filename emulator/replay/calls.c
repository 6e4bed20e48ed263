/* See calls.h. */
#include "replay/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define SURE_RANKS 4 /* three may be a rank and both its neighbours */

bool calls_are_even(const struct calls *c)
{
	for (uint32_t i = 1; i < c->n; i++)
		if (c->list[i].bytes != c->list[0].bytes)
			return false;
	return true;
}

static uint32_t count_sends(const struct calls *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->list[i].is_send != 0;
	return n;
}

/* @n calls: none, or one for each rank, or for each other rank: all; or for more than half. */
static enum calls_reach reach_of(uint32_t n, uint32_t n_ranks, bool has_own)
{
	if (n == 0 || n == n_ranks - !has_own)
		return CALLS_TO_ALL;
	return n > n_ranks / 2 ? CALLS_TO_MOST : CALLS_TO_SOME;
}

int calls_find_reach(const struct calls *c, enum calls_reach *ret, bool *ret_sure)
{
	uint32_t n_ranks = c->map->n_ranks, n_sends = count_sends(c);
	enum calls_reach sends, receives;
	bool has_own[2] = {false, false};
	CLEANUP(freep) uint8_t *met = NULL;

	*ret = CALLS_TO_SOME;
	*ret_sure = false;
	if (c->n == 0 || c->n > 2 * (uint64_t)n_ranks)
		return 0;
	met = calloc(n_ranks, 1);
	if (!met)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct record_call *call = &c->list[i];
		uint8_t way = call->is_send ? 1 : 2;

		if (call->peer >= n_ranks || met[call->peer] & way)
			return 0;
		met[call->peer] |= way;
		has_own[call->is_send != 0] |= call->peer == c->rank;
	}
	sends = reach_of(n_sends, n_ranks, has_own[1]);
	receives = reach_of(c->n - n_sends, n_ranks, has_own[0]);
	*ret = sends > receives ? sends : receives;
	*ret_sure = *ret == CALLS_TO_ALL && n_ranks >= (has_own[0] || has_own[1] ? 2 : SURE_RANKS);
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

/* Whose sizes each rank there has. */
static void find_sources(const struct calls *from, const uint32_t (*same)[2], uint32_t n_same,
			 const struct calls *to, uint32_t *ret)
{
	uint32_t n_ranks = from->map->n_ranks;

	for (uint32_t i = 0; i < to->map->n_ranks; i++) {
		ret[i] = i % n_ranks;
		if (ret[i] == from->rank && i != to->rank) /* its own may be missing */
			ret[i] = (ret[i] + 1) % n_ranks;
	}
	for (uint32_t i = 0; i < n_same; i++)
		ret[same[i][1]] = same[i][0];
	ret[to->rank] = from->rank;
}

/* By rank, of both ways; UINT64_MAX: none. */
static uint64_t *list_bytes(const struct calls *c)
{
	uint32_t n = c->map->n_ranks;
	uint64_t *bytes = malloc(2 * (size_t)n * sizeof(*bytes));

	for (size_t i = 0; bytes && i < 2 * (size_t)n; i++)
		bytes[i] = UINT64_MAX;
	for (uint32_t i = 0; bytes && i < c->n; i++)
		bytes[(c->list[i].is_send ? n : 0) + c->list[i].peer] = c->list[i].bytes;
	return bytes;
}

static int make_all(const struct calls *from, const uint32_t (*same)[2], uint32_t n_same,
		    struct calls *to)
{
	uint32_t n_ranks = to->map->n_ranks, n = 0;
	CLEANUP(freep) uint32_t *source = malloc(n_ranks * sizeof(*source));
	CLEANUP(freep) uint64_t *bytes = list_bytes(from);
	struct record_call *list = malloc(2 * (size_t)n_ranks * sizeof(*list));
	/* a send and a receive of each rank in turn, or all sends, then all receives */
	bool is_in_turn = from->n > 1 && from->list[0].is_send != from->list[1].is_send;

	if (!source || !bytes || !list) {
		free(list);
		return -ENOMEM;
	}
	find_sources(from, same, n_same, to, source);
	for (uint32_t i = 0; i < 2 * n_ranks; i++) {
		uint32_t peer = is_in_turn ? i / 2 : i % n_ranks;
		bool is_second = is_in_turn ? i % 2 : i >= n_ranks;
		bool is_send = from->list[0].is_send ? !is_second : is_second;
		uint64_t b = bytes[(is_send ? from->map->n_ranks : 0) + source[peer]];

		if (b != UINT64_MAX)
			list[n++] = (struct record_call){peer, is_send, b};
	}
	to->list = list;
	to->n = n;
	return 0;
}

/* --- the others ------------------------------------------------------------------------------- */

/* The rank of the world @to that differs from @own as, in the world @from, @peer from @rank. */
static int64_t by_layout(const struct world *from, uint32_t rank, uint32_t peer,
			 const struct world *to, uint32_t own)
{
	for (size_t k = 0; k < from->n_layouts; k++) {
		const struct layout *was = &from->layouts[k], *is = &to->layouts[k];
		int64_t ret = own;
		uint32_t i;

		for (i = 0; i < was->n_axes; i++) {
			const struct layout_axis *a = &was->axis[i], *b = &is->axis[i];
			uint32_t at = rank / a->stride % a->size,
				 there = peer / a->stride % a->size;

			if (at == there)
				continue;
			if (a->size != b->size)
				break;
			ret += ((int64_t)there - own / b->stride % b->size) * b->stride;
		}
		if (i == was->n_axes)
			return ret;
	}
	return -1;
}

static int64_t peer_of(enum calls_shape shape, const struct calls *from, uint32_t peer,
		       const struct calls *to)
{
	uint32_t n = from->map->n_ranks;
	int64_t away = (int64_t)peer - from->rank, there;

	if (shape == CALLS_LAYOUT) {
		there = by_layout(from->world, membership_world(from->map, from->rank),
				  membership_world(from->map, peer), to->world,
				  membership_world(to->map, to->rank));
		return there < 0 ? -1 : membership_rank(to->map, (uint32_t)there);
	}
	if (2 * llabs(away) > n) /* it is nearer the other way */
		away += away < 0 ? n : -(int64_t)n;
	if (llabs(away) >= to->map->n_ranks)
		return -1;
	return (to->rank + away + to->map->n_ranks) % to->map->n_ranks;
}

int calls_make(enum calls_shape shape, const struct calls *from, const uint32_t (*same)[2],
	       uint32_t n_same, struct calls *to)
{
	struct record_call *list;

	if (shape == CALLS_ALL)
		return make_all(from, same, n_same, to);
	list = malloc(((size_t)from->n + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n; i++) {
		int64_t peer = from->list[i].peer < from->map->n_ranks
				       ? peer_of(shape, from, from->list[i].peer, to)
				       : -1;

		if (peer < 0) {
			free(list);
			return -EINVAL;
		}
		list[i] = from->list[i];
		list[i].peer = (uint32_t)peer;
	}
	to->list = list;
	to->n = from->n;
	return 0;
}

/* --- both ------------------------------------------------------------------------------------- */

bool calls_have_same_peers(enum calls_shape shape, const struct calls *a, const struct calls *b)
{
	enum calls_reach reach;
	bool is_sure;

	if (a->n != b->n || count_sends(a) != count_sends(b))
		return false;
	/* @a goes to all, so that their numbers say the rest */
	if (shape == CALLS_ALL)
		return calls_find_reach(b, &reach, &is_sure) == 0 && reach == CALLS_TO_ALL;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->list[i].peer != b->list[i].peer ||
		    !a->list[i].is_send != !b->list[i].is_send)
			return false;
	return true;
}
