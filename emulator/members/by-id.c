/* See by-id.h. */
#include "members/by-id.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Known members keep their places; the nearest virtual ranks behind the first one fill the others.
 */
static int guess_block(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		       size_t n_known, struct members *ret, struct err *err)
{
	CLEANUP(freep) uint32_t *table = malloc((size_t)n_ranks * sizeof(*table));
	uint32_t world = topology_world(c->topology), at, looked = 0, k = 0;

	if (!table)
		return err_set(err, ENOMEM, "out of memory");
	at = known[0].world_rank - (known[0].rank <= known[0].world_rank ? known[0].rank : 0);
	for (uint32_t r = 0; r < n_ranks; r++) {
		if (k < n_known && known[k].rank == r) {
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
				       n_ranks, n_known, n_ranks - n_known, world - c->n_real);
		table[r] = at;
		at = (at + 1) % world;
		looked++;
	}
	members_set_table(ret, n_ranks, steal_ptr(table));
	return 0;
}

/* The progression through the known members; through a single one, one rank a node, as in groups
 * that span nodes. Return: false: it would leave the world. */
static bool progression(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
			size_t n_known, struct radix *ret)
{
	int64_t stride = c->topology->gpus_per_node, base, last;

	if (n_known > 1)
		stride = ((int64_t)known[1].world_rank - known[0].world_rank) /
			 ((int64_t)known[1].rank - known[0].rank);
	base = (int64_t)known[0].world_rank - (int64_t)known[0].rank * stride;
	last = base + (int64_t)(n_ranks - 1) * stride;
	if (stride <= 0 || base < 0 || last >= (int64_t)topology_world(c->topology))
		return false;
	*ret = (struct radix){.base = (uint32_t)base};
	return radix_push(ret, n_ranks, (uint32_t)stride);
}

static bool is_all_real(const struct cluster *c, const struct radix *r)
{
	uint32_t n = 0;

	for (size_t i = 0; i < c->n_real; i++)
		n += radix_find(r, c->real[i]) >= 0;
	return n == radix_size(r);
}

static int guess(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		 size_t n_known, enum members_patience patience, struct members *ret,
		 struct err *err)
{
	enum fit fit = FIT_NO;
	struct radix line;
	int r;

	if (progression(c, n_ranks, known, n_known, &line))
		fit = cluster_fit(c, &line, known, n_known);
	/* a row of real ranks in which one is missing: it comes, or it has gone elsewhere */
	if (fit == FIT_LACKS && n_known > 1 && patience != MEMBERS_ALL_CAME &&
	    is_all_real(c, &line))
		return MEMBERS_WAIT;
	if (fit == FIT_YES)
		r = members_from_radix(&line, ret) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
	else
		r = guess_block(c, n_ranks, known, n_known, ret, err);
	if (r < 0)
		return r;
	ret->source = MEMBERS_GUESS;
	ret->sure = MEMBERS_GUESSED;
	return 0;
}

/* The groups of the layout that fit. Return: how many different ones; *ret_first is the first,
 * *ret_lacks whether another would fit if more real ranks came. */
static uint32_t find_groups(const struct cluster *c, uint32_t n_ranks,
			    const struct wire_member *known, size_t n_known,
			    struct radix *ret_first, uint32_t *ret_axes, bool *ret_lacks)
{
	uint32_t n = 0, axes = 0;
	struct radix r;

	*ret_lacks = false;
	while (cluster_next_group(c, known[0].world_rank, &axes, &r)) {
		enum fit fit =
			radix_size(&r) == n_ranks ? cluster_fit(c, &r, known, n_known) : FIT_NO;

		*ret_lacks = *ret_lacks || fit == FIT_LACKS;
		if (fit != FIT_YES || (n && radix_equal(ret_first, &r)))
			continue;
		if (n++ == 0) {
			*ret_first = r;
			*ret_axes = axes;
		}
	}
	return n;
}

/* Every member is real, or the communicator is the whole world. */
static int take_known(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		      size_t n_known, struct members *ret, struct err *err)
{
	bool is_all = n_known == n_ranks;
	uint32_t *table = malloc(((size_t)n_ranks + 1) * sizeof(*table));

	if (!table)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t r = 0; r < n_ranks; r++)
		table[r] = is_all ? known[r].world_rank : r;
	members_set_table(ret, n_ranks, table);
	ret->source = is_all ? MEMBERS_ALL_REAL : MEMBERS_WORLD;
	ret->axes = is_all ? members_axes(c, &ret->map) : 0;
	return 0;
}

int members_by_id(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, enum members_patience patience, struct members *ret,
		  struct err *err)
{
	uint32_t world = topology_world(c->topology), n_groups, axes = 0;
	struct radix group;
	bool lacks;

	if (n_ranks > world)
		return err_set(err, EINVAL,
			       "a communicator of %u ranks in a world of %u; set nodes and "
			       "gpus-per-node of nboxd to what the job believes",
			       n_ranks, world);
	for (size_t i = 0; i < n_known && n_known < n_ranks && n_ranks == world; i++)
		if (known[i].rank != known[i].world_rank)
			return err_set(err, EINVAL,
				       "world rank %u has rank %u in the communicator of "
				       "the whole world; there both must be equal",
				       known[i].world_rank, known[i].rank);
	if (n_known == n_ranks || n_ranks == world)
		return take_known(c, n_ranks, known, n_known, ret, err);
	n_groups = find_groups(c, n_ranks, known, n_known, &group, &axes, &lacks);
	if (patience == MEMBERS_AT_ONCE ? n_groups != 1 || lacks : n_groups == 0 && lacks)
		return MEMBERS_WAIT;
	if (n_groups == 0)
		return guess(c, n_ranks, known, n_known, patience, ret, err);
	if (members_from_radix(&group, ret) < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->source = MEMBERS_LAYOUT;
	ret->sure = n_groups == 1 ? MEMBERS_EXACT : MEMBERS_GUESSED;
	ret->axes = axes;
	return 0;
}
