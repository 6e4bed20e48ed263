/* Membership of communicators; see members.h. */
#include "daemon/members.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

void members_deinit(struct members *m)
{
	free(m->table);
	*m = (struct members){0};
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int cluster_is_real(const struct cluster *c, uint32_t world_rank)
{
	return bsearch(&world_rank, c->real, c->n_real, sizeof(*c->real), compare_u32) != NULL;
}

/* --- inference ------------------------------------------------------------- */

enum fit { FIT_NO, FIT_WAIT, FIT_YES };

static bool is_known(const struct wire_member *known, size_t n_known, uint32_t rank)
{
	for (size_t i = 0; i < n_known; i++)
		if (known[i].rank == rank)
			return true;
	return false;
}

/* Does world = base + rank * stride go through all known members, stay inside the
 * world, and take no other real rank? */
static enum fit fits(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		     size_t n_known, int64_t stride, int64_t *ret_base)
{
	int64_t base = (int64_t)known[0].world_rank - (int64_t)known[0].rank * stride, last;

	last = base + (int64_t)(n_ranks - 1) * stride;
	if (stride <= 0 || base < 0 || last >= (int64_t)topology_world(c->topology))
		return FIT_NO;
	for (size_t i = 0; i < n_known; i++)
		if (base + (int64_t)known[i].rank * stride != (int64_t)known[i].world_rank)
			return FIT_NO;
	*ret_base = base;
	for (size_t i = 0; i < c->n_real; i++) {
		int64_t off = (int64_t)c->real[i] - base;

		if (off < 0 || off % stride || off / stride >= (int64_t)n_ranks)
			continue;
		if (!is_known(known, n_known, (uint32_t)(off / stride)))
			return FIT_WAIT;
	}
	return FIT_YES;
}

static void set_progression(struct members *m, uint32_t n_ranks, int64_t base, int64_t stride,
			    int is_guess)
{
	*m = (struct members){.map = {n_ranks, (uint32_t)base, (uint32_t)stride, NULL},
			      .is_guess = is_guess};
}

/* Takes over @table; keeps it only when no progression says the same. */
static void set_table(struct members *m, uint32_t n_ranks, uint32_t *table, int is_guess)
{
	int64_t stride = n_ranks > 1 ? (int64_t)table[1] - (int64_t)table[0] : 1;
	uint32_t r = 2;

	for (; stride > 0 && r < n_ranks; r++)
		if ((int64_t)table[r] - (int64_t)table[r - 1] != stride)
			break;
	if (stride > 0 && r >= n_ranks) {
		set_progression(m, n_ranks, table[0], stride, is_guess);
		free(table);
		return;
	}
	*m = (struct members){.map = {n_ranks, 0, 0, table}, .table = table, .is_guess = is_guess};
}

/* Virtual ranks that are nearest after the first known one fill the free places. */
static int infer_block(const struct cluster *c, uint32_t n_ranks,
		       const struct wire_member *known, size_t n_known, struct members *ret,
		       struct err *err)
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
	set_table(ret, n_ranks, steal_ptr(table), 1);
	return 0;
}

static int infer_all_known(uint32_t n_ranks, const struct wire_member *known,
			   struct members *ret, struct err *err)
{
	uint32_t *table = malloc((size_t)n_ranks * sizeof(*table));

	if (!table)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t r = 0; r < n_ranks; r++)
		table[r] = known[r].world_rank;
	set_table(ret, n_ranks, table, 0);
	return 0;
}

int members_infer(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, struct members *ret, struct err *err)
{
	uint32_t world = topology_world(c->topology), gpus = c->topology->gpus_per_node;
	int64_t strides[3], base = 0;
	size_t n_strides = 0;
	bool must_wait = false;

	if (n_ranks > world)
		return err_set(err, EINVAL,
			       "a communicator of %u ranks in a world of %u; set nodes and "
			       "gpus-per-node of nboxd to what the job believes",
			       n_ranks, world);
	if (n_known == n_ranks)
		return infer_all_known(n_ranks, known, ret, err);
	if (n_ranks == world) {
		for (size_t i = 0; i < n_known; i++)
			if (known[i].rank != known[i].world_rank)
				return err_set(err, EINVAL,
					       "world rank %u has rank %u in the communicator of "
					       "the whole world; there both must be equal",
					       known[i].world_rank, known[i].rank);
		set_progression(ret, n_ranks, 0, 1, 0);
		return 0;
	}
	if (n_known >= 2) {
		strides[n_strides++] = ((int64_t)known[1].world_rank - known[0].world_rank) /
				       ((int64_t)known[1].rank - known[0].rank);
	} else {
		/* One rank a node; a row of ranks; as far apart as the world allows. */
		strides[n_strides++] = gpus;
		strides[n_strides++] = world / n_ranks;
		strides[n_strides++] = 1;
	}
	for (size_t i = 0; i < n_strides; i++) {
		switch (fits(c, n_ranks, known, n_known, strides[i], &base)) {
		case FIT_YES:
			set_progression(ret, n_ranks, base, strides[i], 1);
			return 0;
		case FIT_WAIT:
			must_wait = true;
			break;
		case FIT_NO:
		default:
			break;
		}
	}
	if (must_wait)
		return MEMBERS_WAIT;
	return infer_block(c, n_ranks, known, n_known, ret, err);
}

/* --- split and shrink -------------------------------------------------------- */

struct seat {
	int64_t key;
	uint32_t rank; /* in the parent */
};

static int compare_seats(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int vote_find(const struct split_vote *votes, size_t n, uint32_t rank)
{
	for (size_t i = 0; i < n; i++)
		if (votes[i].rank == rank)
			return (int)i;
	return -1;
}

/* For each local index the real members that have it, in order: first[l] ..
 * first[l + 1] of index[]. */
struct templates {
	size_t *first, *index; /* owned */
	size_t n_local;
};

static void templates_deinit(struct templates *t)
{
	free(t->first);
	free(t->index);
}

static int templates_init(struct templates *t, const struct cluster *c,
			  const struct membership *parent, const struct split_vote *votes,
			  size_t n_votes)
{
	uint32_t gpus = c->topology->gpus_per_node;
	size_t n = 0;

	*t = (struct templates){.n_local = gpus};
	t->first = calloc((size_t)gpus + 1, sizeof(*t->first));
	t->index = calloc(n_votes + 1, sizeof(*t->index));
	if (!t->first || !t->index)
		return -ENOMEM;
	for (uint32_t l = 0; l < gpus; l++) {
		t->first[l] = n;
		for (size_t i = 0; i < n_votes; i++)
			if (membership_world(parent, votes[i].rank) % gpus == l)
				t->index[n++] = i;
	}
	t->first[gpus] = n;
	return 0;
}

/* The vote that virtual rank @rank copies: same local index, nodes taken in turn;
 * where no real member has that index, members in turn. */
static size_t template_of(const struct templates *t, const struct cluster *c, uint32_t world,
			  uint32_t rank, size_t n_votes)
{
	uint32_t gpus = c->topology->gpus_per_node;
	size_t first = t->first[world % gpus], n = t->first[world % gpus + 1] - first;

	return n ? t->index[first + world / gpus % n] : rank % n_votes;
}

/* Puts the seats in order and makes the members of them. */
static int seat_members(const struct membership *parent, struct seat *seats, uint32_t n,
			struct members *ret, uint32_t **ret_ranks)
{
	CLEANUP(freep) uint32_t *ranks = malloc(((size_t)n + 1) * sizeof(*ranks));
	uint32_t *table = malloc(((size_t)n + 1) * sizeof(*table));

	if (!ranks || !table) {
		free(table);
		return -ENOMEM;
	}
	qsort(seats, n, sizeof(*seats), compare_seats);
	for (uint32_t i = 0; i < n; i++) {
		ranks[i] = seats[i].rank;
		table[i] = membership_world(parent, seats[i].rank);
	}
	if (n == 0) {
		free(table);
		*ret = (struct members){0};
	} else {
		set_table(ret, n, table, 0);
	}
	*ret_ranks = steal_ptr(ranks);
	return 0;
}

int members_split(const struct cluster *c, const struct membership *parent,
		  const struct split_vote *votes, size_t n_votes, enum config_split policy,
		  int32_t color, struct members *ret, uint32_t **ret_ranks)
{
	CLEANUP(templates_deinit) struct templates t = {0};
	CLEANUP(freep) struct seat *seats = malloc((size_t)parent->n_ranks * sizeof(*seats));
	uint32_t n = 0, gpus = c->topology->gpus_per_node;
	int r;

	if (!seats || templates_init(&t, c, parent, votes, n_votes) < 0)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < parent->n_ranks; rank++) {
		uint32_t world = membership_world(parent, rank);
		int vote = cluster_is_real(c, world) ? vote_find(votes, n_votes, rank) : -1;
		size_t from;
		bool joins;

		if (vote >= 0) {
			if (votes[vote].color == color)
				seats[n++] = (struct seat){votes[vote].key, rank};
			continue;
		}
		from = template_of(&t, c, world, rank, n_votes);
		joins = (policy == SPLIT_SAME ? votes[0].color : votes[from].color) == color;
		if (policy == SPLIT_NODE && joins)
			joins = world / gpus == membership_world(parent, votes[from].rank) / gpus;
		if (joins)
			seats[n++] = (struct seat){(int64_t)votes[from].key + (int64_t)rank -
							   (int64_t)votes[from].rank, rank};
	}
	r = seat_members(parent, seats, n, ret, ret_ranks);
	if (r == 0)
		ret->is_guess = parent->n_ranks > n_votes;
	return r;
}

int members_shrink(const struct membership *parent, const uint32_t *excluded,
		   size_t n_excluded, struct members *ret, uint32_t **ret_ranks)
{
	CLEANUP(bitmap_deinit) struct bitmap out = {0};
	CLEANUP(freep) struct seat *seats = malloc((size_t)parent->n_ranks * sizeof(*seats));
	uint32_t n = 0;

	if (!seats || bitmap_init(&out, parent->n_ranks) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n_excluded; i++)
		if (excluded[i] < parent->n_ranks)
			bitmap_set(&out, excluded[i]);
	for (uint32_t rank = 0; rank < parent->n_ranks; rank++)
		if (!bitmap_test(&out, rank))
			seats[n++] = (struct seat){rank, rank};
	return seat_members(parent, seats, n, ret, ret_ranks);
}

uint32_t members_per_node(const struct membership *m, const struct topology *t)
{
	uint32_t run = 1;

	if (m->n_ranks == 0)
		return 1;
	while (run < m->n_ranks &&
	       topology_node(t, membership_world(m, run)) ==
		       topology_node(t, membership_world(m, 0)))
		run++;
	if (m->n_ranks % run)
		return 1;
	for (uint32_t r = run + 1; r <= m->n_ranks; r++) {
		bool same = r < m->n_ranks && topology_node(t, membership_world(m, r)) ==
						      topology_node(t, membership_world(m, r - 1));

		if (r % run == 0 ? same : !same)
			return 1;
	}
	return run;
}
