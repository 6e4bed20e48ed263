/* Communicators made with an id: the number of ranks is known, and who the real members
 * are. See members.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "members/members-private.h"

#define LEVELS 3 /* of groups that are looked for without a layout */

static int compare_seen(const void *pa, const void *pb)
{
	const struct wire_member *a = pa, *b = pb;

	if (a->world_rank != b->world_rank)
		return a->world_rank < b->world_rank ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

void members_sort_seen(struct wire_member *seen, size_t n)
{
	if (n)
		qsort(seen, n, sizeof(*seen), compare_seen);
}

/* --- candidates ------------------------------------------------------------------ */

/* The groups that fit, as far as the choice needs them. */
struct choice {
	struct radix first;
	uint32_t axes;  /* of the first, with a layout */
	uint32_t n;     /* different ones */
	bool is_placed; /* all share nodes as the first does */
};

struct search {
	const struct cluster *cluster;
	uint32_t n_ranks;
	const struct wire_member *known, *seen;
	size_t n_known, n_seen;
	uint32_t axes; /* of the candidate that is being looked at */
	struct choice all, supported;
	bool must_wait; /* one would fit if more real ranks came */
};

static bool is_known(const struct search *s, uint32_t world_rank)
{
	for (size_t i = 0; i < s->n_known; i++)
		if (s->known[i].world_rank == world_rank)
			return true;
	return false;
}

/* Have the other real ranks checked in at this group's siblings? */
static bool is_supported(const struct search *s, const struct radix *r)
{
	for (size_t i = 0; i < s->cluster->n_real; i++) {
		struct wire_member want = {.world_rank = s->cluster->real[i]};
		struct radix sibling = *r;

		if (is_known(s, want.world_rank))
			continue;
		want.rank = radix_move(&sibling, want.world_rank);
		if (s->n_seen == 0 ||
		    !bsearch(&want, s->seen, s->n_seen, sizeof(want), compare_seen))
			return false;
	}
	return true;
}

static void add(const struct search *s, struct choice *c, const struct radix *r)
{
	if (c->n == 0) {
		*c = (struct choice){*r, s->axes, 1, true};
		return;
	}
	if (radix_equal(&c->first, r))
		return;
	c->n++;
	c->is_placed = c->is_placed && members_same_place(s->cluster->topology, &c->first, r);
}

/* @family: base 0. */
static bool consider(void *ctx, const struct radix *family)
{
	struct search *s = ctx;
	struct radix r = *family;

	if (radix_move(&r, s->known[0].world_rank) != s->known[0].rank)
		return true;
	for (size_t i = 1; i < s->n_known; i++)
		if (radix_find(&r, s->known[i].world_rank) != (int64_t)s->known[i].rank)
			return true;
	for (size_t i = 0; i < s->cluster->n_real; i++) {
		if (radix_find(&r, s->cluster->real[i]) >= 0 && !is_known(s, s->cluster->real[i])) {
			s->must_wait = true;
			return true;
		}
	}
	add(s, &s->all, &r);
	if (is_supported(s, &r))
		add(s, &s->supported, &r);
	return true;
}

static void consider_layouts(struct search *s)
{
	const struct cluster *c = s->cluster;
	struct radix r;

	for (uint32_t i = 0; i < c->n_layouts; i++) {
		for (uint32_t axes = 1; axes < 1u << c->layouts[i].n_axes; axes++) {
			layout_group(&c->layouts[i], axes, 0, &r);
			if (radix_size(&r) != s->n_ranks)
				continue;
			s->axes = i << 8 | axes;
			consider(s, &r);
		}
	}
	s->axes = 0;
}

/* --- what the choice says ------------------------------------------------------------ */

/* Every group has one rank a node, whatever its members are. */
static bool is_any_placed(const struct cluster *c)
{
	return c->topology->gpus_per_node == 1;
}

/* A layout is the user's word. Without one there is only what other real ranks bear out, and even
 * then the job's groups may be no grid's: never exact. */
static int take(const struct search *s, enum members_source source, struct members *ret,
		struct err *err)
{
	const struct choice *c = s->supported.n ? &s->supported : &s->all;
	bool is_said = source == MEMBERS_LAYOUT;
	bool is_enough = is_said || (s->supported.n > 0 && s->cluster->n_real > 1);

	if (members_from_radix(&c->first, ret) < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->source = source;
	ret->axes = c->axes;
	/* siblings may be late: what they bear out first need not be this one's family */
	if (is_said && s->all.n == 1)
		ret->sure = MEMBERS_EXACT;
	else if (((is_enough && s->all.is_placed) || is_any_placed(s->cluster)) &&
		 !s->cluster->ranks_matter)
		ret->sure = MEMBERS_PLACED;
	else
		ret->sure = MEMBERS_GUESSED;
	return 0;
}

/* --- guesses ------------------------------------------------------------------------- */

enum fit { FIT_NO, FIT_WAIT, FIT_YES };

/* Does world = base + rank * stride go through all known members, stay inside the
 * world, and take no other real rank? */
static enum fit fits(const struct search *s, int64_t stride, uint32_t *ret_base)
{
	const struct cluster *c = s->cluster;
	const struct wire_member *known = s->known;
	int64_t base = (int64_t)known[0].world_rank - (int64_t)known[0].rank * stride, last;

	last = base + (int64_t)(s->n_ranks - 1) * stride;
	if (stride <= 0 || base < 0 || last >= (int64_t)topology_world(c->topology))
		return FIT_NO;
	for (size_t i = 0; i < s->n_known; i++)
		if (base + (int64_t)known[i].rank * stride != (int64_t)known[i].world_rank)
			return FIT_NO;
	*ret_base = (uint32_t)base;
	for (size_t i = 0; i < c->n_real; i++) {
		int64_t off = (int64_t)c->real[i] - base;

		if (off < 0 || off % stride || off / stride >= (int64_t)s->n_ranks)
			continue;
		if (!is_known(s, c->real[i]))
			return FIT_WAIT;
	}
	return FIT_YES;
}

/* Virtual ranks that are nearest after the first known one fill the free places. */
static int guess_block(const struct search *s, struct members *ret, struct err *err)
{
	const struct cluster *c = s->cluster;
	const struct wire_member *known = s->known;
	CLEANUP(freep) uint32_t *table = malloc((size_t)s->n_ranks * sizeof(*table));
	uint32_t world = topology_world(c->topology), at, looked = 0, k = 0;

	if (!table)
		return err_set(err, ENOMEM, "out of memory");
	at = known[0].world_rank - (known[0].rank <= known[0].world_rank ? known[0].rank : 0);
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		if (k < s->n_known && known[k].rank == r) {
			table[r] = known[k++].world_rank;
			continue;
		}
		while (looked < world && cluster_is_real(c, at)) {
			at = (at + 1) % world;
			looked++;
		}
		if (looked >= world)
			return err_set(err, EINVAL,
				       "a communicator of %u ranks with %zu real members needs %zu "
				       "virtual ones, but the world has only %zu; did all real "
				       "members check in (settle)?",
				       s->n_ranks, s->n_known, s->n_ranks - s->n_known,
				       world - c->n_real);
		table[r] = at;
		at = (at + 1) % world;
		looked++;
	}
	members_set_table(ret, s->n_ranks, steal_ptr(table));
	return 0;
}

/* No regular group fits: a progression through the known members, else a block. */
static int guess(struct search *s, struct members *ret, struct err *err)
{
	const struct wire_member *known = s->known;
	uint32_t base, n_strides = 0;
	int64_t strides[3];
	int r;

	if (s->n_known >= 2) {
		strides[n_strides++] = ((int64_t)known[1].world_rank - known[0].world_rank) /
				       ((int64_t)known[1].rank - known[0].rank);
	} else {
		/* One rank a node; as far apart as the world allows; a row of ranks. */
		strides[n_strides++] = s->cluster->topology->gpus_per_node;
		strides[n_strides++] = topology_world(s->cluster->topology) / s->n_ranks;
		strides[n_strides++] = 1;
	}
	for (uint32_t i = 0; i < n_strides; i++) {
		enum fit fit = fits(s, strides[i], &base);

		s->must_wait = s->must_wait || fit == FIT_WAIT;
		if (fit != FIT_YES)
			continue;
		members_set_progression(ret, s->n_ranks, base, (uint32_t)strides[i]);
		goto guessed;
	}
	if (s->must_wait)
		return MEMBERS_WAIT;
	r = guess_block(s, ret, err);
	if (r < 0)
		return r;
guessed:
	ret->source = MEMBERS_GUESS;
	ret->sure = is_any_placed(s->cluster) && !s->cluster->ranks_matter ? MEMBERS_PLACED
									   : MEMBERS_GUESSED;
	return 0;
}

/* Who is missing may yet come: to this communicator, or to its siblings. */
static bool is_early(const struct search *s, enum members_patience patience)
{
	return patience != MEMBERS_NOW && s->must_wait && s->supported.n == 0;
}

/* --- the whole ----------------------------------------------------------------------- */

static int take_known(const struct search *s, struct members *ret, struct err *err)
{
	uint32_t *table = malloc(((size_t)s->n_ranks + 1) * sizeof(*table));

	if (!table)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t r = 0; r < s->n_ranks; r++)
		table[r] = s->known[r].world_rank;
	members_set_table(ret, s->n_ranks, table);
	ret->source = MEMBERS_ALL_REAL;
	ret->axes = members_axes(s->cluster, &ret->map);
	return 0;
}

int members_infer(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, const struct wire_member *seen, size_t n_seen,
		  enum members_patience patience, struct members *ret, struct err *err)
{
	struct search s = {.cluster = c,
			   .n_ranks = n_ranks,
			   .known = known,
			   .n_known = n_known,
			   .seen = seen,
			   .n_seen = n_seen};
	uint32_t world = topology_world(c->topology);

	if (n_ranks > world)
		return err_set(err, EINVAL,
			       "a communicator of %u ranks in a world of %u; set nodes and "
			       "gpus-per-node of nboxd to what the job believes",
			       n_ranks, world);
	if (n_known == n_ranks && n_ranks < world)
		return take_known(&s, ret, err);
	if (n_ranks == world) {
		for (size_t i = 0; i < n_known && n_known < n_ranks; i++)
			if (known[i].rank != known[i].world_rank)
				return err_set(err, EINVAL,
					       "world rank %u has rank %u in the communicator of "
					       "the whole world; there both must be equal",
					       known[i].world_rank, known[i].rank);
		if (n_known == n_ranks)
			return take_known(&s, ret, err);
		members_set_progression(ret, n_ranks, 0, 1);
		ret->source = MEMBERS_WORLD;
		return 0;
	}
	consider_layouts(&s);
	if (s.all.n == 0 && s.must_wait)
		return MEMBERS_WAIT;
	if (patience == MEMBERS_AT_ONCE && (s.all.n != 1 || s.must_wait))
		return MEMBERS_WAIT;
	if (s.all.n)
		return s.all.n > 1 && is_early(&s, patience) ? MEMBERS_WAIT
							     : take(&s, MEMBERS_LAYOUT, ret, err);
	for (uint32_t levels = 1; levels <= LEVELS; levels++)
		radix_each(world, n_ranks, levels, consider, &s);
	if (is_early(&s, patience))
		return MEMBERS_WAIT;
	if (s.all.n)
		return take(&s, MEMBERS_STRIDE, ret, err);
	return guess(&s, ret, err);
}
