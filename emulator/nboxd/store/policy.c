/* See policy.h. */
#include "nboxd/store/policy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_real(const struct policy_world *w, int64_t rank)
{
	size_t low = 0, high = w->n_real;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->real[mid] < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->n_real && w->real[low] == rank;
}

/* Every rank below a real one is real: then a virtual rank is never below a real one in
 * a group, for torch sorts the ranks of a group. */
static bool has_real_front(const struct policy_world *w)
{
	return w->n_real > 0 && w->real[w->n_real - 1] == w->n_real - 1;
}

/* The group rank that sets it: the one that makes the id; the address's own. Roots of a
 * scalable init are the first ranks of equal parts; into how many the world is cut is a
 * setting of the job, so only root 0 is known. */
static int64_t setter(const struct torch_key *k)
{
	switch (k->kind) {
	case TORCH_ID:
		return 0;
	case TORCH_ID_ROOT:
		return k->rank == 0 ? 0 : -1;
	case TORCH_ID_PAIR:
	case TORCH_GLOO:
		return k->rank;
	case TORCH_OTHER:
	case TORCH_WORKERS:
	case TORCH_BARRIER:
	case TORCH_BARRIER_LAST:
	case TORCH_KEY_KINDS:
	default:
		return -1;
	}
}

struct policy_verdict policy_on_missing(const struct policy_world *w, const struct torch_key *k,
					policy_lookup *lookup, void *ctx)
{
	struct policy_verdict v = {POLICY_WAIT, -1};
	bool is_gloo = k->kind == TORCH_GLOO;
	bool is_id = k->kind == TORCH_ID || k->kind == TORCH_ID_PAIR || k->kind == TORCH_ID_ROOT;
	int64_t rank = setter(k);

	if (w->n_real >= w->n_ranks)
		return v;
	if (k->kind == TORCH_BARRIER_LAST && k->is_local)
		v.answer = POLICY_SETTLE;
	if (rank >= 0)
		v.rank = k->is_default ? rank : lookup ? lookup(ctx, k, (uint32_t)rank) : -1;
	if (v.rank >= (int64_t)w->n_ranks)
		v.rank = -1;
	if (v.rank >= 0 && !is_real(w, v.rank))
		v.answer = is_id || is_gloo ? POLICY_INVENT : POLICY_WAIT;
	else if (v.rank < 0 && is_gloo) /* sorted: a world rank is never below its group rank */
		v.answer =
			has_real_front(w) && k->rank >= w->n_real ? POLICY_INVENT : POLICY_SETTLE;
	else if (v.rank < 0 && is_id && !(has_real_front(w) && rank >= 0))
		v.answer = POLICY_SETTLE;
	return v;
}

int64_t policy_initial_count(const struct policy_world *w, const struct torch_key *k, int64_t world)
{
	int64_t n_virtual = (int64_t)w->n_ranks - (int64_t)w->n_real;
	bool counts = k->kind == TORCH_WORKERS || (k->kind == TORCH_BARRIER && !k->is_local) ||
		      world == (int64_t)w->n_ranks;

	return counts && n_virtual > 0 ? n_virtual : 0;
}

char *policy_advice(const struct policy_world *w, const struct torch_key *k,
		    const struct policy_verdict *v, char *buf, size_t size)
{
	char group[84], name[61];

	if (k->is_default)
		snprintf(group, sizeof(group), "the default group");
	else
		snprintf(group, sizeof(group), "group \"%s\"",
			 store_bytes_print(k->group, name, sizeof(name)));
	if (k->kind == TORCH_GLOO && v->answer == POLICY_INVENT)
		snprintf(
			buf, size,
			"it is the gloo address of virtual rank %lld in %s. nboxd gives one once a "
			"real rank of the group has set its own, if it runs on that rank's host and finds a free "
			"port; else use backend \"nccl\" (torch before 2.6 makes gloo groups when none is named)",
			(long long)v->rank, group);
	else if (k->kind == TORCH_GLOO)
		snprintf(
			buf, size,
			"it is the gloo address of rank %u of %s, which has not made the group yet",
			k->rank, group);
	else if (k->kind == TORCH_ID || k->kind == TORCH_ID_PAIR || k->kind == TORCH_ID_ROOT)
		snprintf(buf, size,
			 v->rank >= 0 ? "it is a communicator's id in %s: real rank %lld makes it "
					"and has not come that far"
				      : "it is a communicator's id in %s: its lowest rank "
					"makes it and has not come that far",
			 group, (long long)v->rank);
	else if (k->kind == TORCH_BARRIER_LAST)
		snprintf(buf, size,
			 "it is a barrier over the store of %s: a real rank has not checked in",
			 group);
	else
		snprintf(
			buf, size,
			"%s%sno real rank has set it yet. Should a virtual one set it (real are %zu "
			"of %u ranks, the first is %u), it never comes: the code that does so must run on "
			"a real rank, see as-node and real of nboxd",
			k->group.n ? "it is a key of " : "", k->group.n ? strcat(group, ", ") : "",
			w->n_real, w->n_ranks, w->n_real ? w->real[0] : 0);
	return buf;
}
