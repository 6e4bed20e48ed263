/* When and on what a what-if acts, whatever it does: keys that nbox takes out of its text before
 * the plug-in sees the others. See scenario/when.h and scenario/target.h. */
#include <errno.h>
#include <string.h>

#include "engine/delay-host.h"
#include "topology/named-ranks.h"

static int take(struct delay_instance *in, const char *key, const char *value, struct err *err)
{
	int r = when_take(&in->when, key, value, err);

	return r == 1 ? target_take(&in->target, key, value, err) : r;
}

/* Ranks of a model that has no key for them. */
static int take_ranks(struct delay_instance *in, const char *rank, const char *node,
		      struct err *err)
{
	in->is_for_ranks = rank || node;
	return named_ranks(&in->chain->world, rank, node, &in->ranks, &in->n_ranks, err);
}

int delay_scope_take(struct delay_instance *in, struct err *err)
{
	const char *rank = NULL, *node = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < in->n_kv && r >= 0; i++) {
		const struct nbox_kv kv = in->kv[i];
		bool is_own = delay_param(in, kv.key);

		r = 0;
		if (is_own)
			in->kv[n++] = kv;
		else if (!strcmp(kv.key, "rank"))
			rank = kv.value;
		else if (!strcmp(kv.key, "node"))
			node = kv.value;
		else if ((r = take(in, kv.key, kv.value, err)) == 1)
			in->kv[n++] = kv;
	}
	in->n_kv = r < 0 ? in->n_kv : n;
	if (r >= 0)
		r = when_check(&in->when, err);
	if (r == 0 && (rank || node))
		r = take_ranks(in, rank, node, err);
	return r < 0 ? err_prefix(err, r, "%s", in->plugin.table.name) : 0;
}

int delay_scope_check(const struct delay_instance *in, bool on_segments, bool on_ops,
		      struct err *err)
{
	if (in->flags & NBOX_OVER_TIME && (!in->when.lasts.is_given || in->when.lasts.is_steps))
		return err_set(err, EINVAL, "%s: say for how long: for=TIME, such as for=10s",
			       in->plugin.table.name);
	if (on_segments && !target_is_any(&in->target))
		return err_set(
			err, EINVAL,
			"%s: op=, bytes= and communicator= say which ops, and this one works "
			"on computation%s",
			in->plugin.table.name, on_ops ? ", too: use two what-ifs" : "");
	return 0;
}

bool delay_scope_has_rank(const struct delay_instance *in, uint32_t world_rank)
{
	const struct nbox_ranks who = {in->ranks, in->n_ranks};

	return !in->is_for_ranks || nbox_ranks_have(&who, world_rank);
}

bool delay_scope_has_op(const struct delay_instance *in, const struct nbox_op *op)
{
	if (!target_has_op(&in->target, op->kind, op->bytes))
		return false;
	for (size_t i = 0; in->is_for_ranks && op->has_rank && i < in->n_ranks; i++)
		if (op->has_rank(op, in->ranks[i]))
			return true;
	return !in->is_for_ranks || !op->has_rank;
}
