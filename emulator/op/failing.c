/* See failing.h. */
#include "op/failing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/arrive.h"
#include "op/ops.h"
#include "op/table.h"

int failing_init(struct failing *f, const struct config *config)
{
	*f = (struct failing){.list = calloc(config->n_failures + 1, sizeof(*f->list))};
	if (!f->list)
		return -ENOMEM;
	for (; f->n < config->n_failures; f->n++)
		f->list[f->n].what = &config->failures[f->n];
	return 0;
}

void failing_deinit(struct failing *f)
{
	free(f->list);
}

const uint32_t *failing_rank(const struct failure *what, const struct comm *c)
{
	for (size_t i = 0; i < what->n_ranks; i++)
		if (membership_rank(&c->members.map, what->ranks[i]) >= 0)
			return &what->ranks[i];
	return NULL;
}

bool failing_concerns(const struct failure *what, const struct comm *c)
{
	return what->n_ranks == 0 || failing_rank(what, c);
}

bool failing_on_op(struct failing_state *s, const struct comm *c, uint32_t kind)
{
	const struct failure *what = s->what;

	if (s->has_struck || what->at.is_given || !failing_concerns(what, c) ||
	    (what->kind != COLL_KINDS && what->kind != kind) || s->n_ops++ < what->after)
		return false;
	s->has_struck = true;
	return true;
}

bool failing_on_arrival(struct failing_state *s, double at_ns, int64_t step)
{
	const struct when_span *at = &s->what->at;

	if (s->has_struck || !at->is_given || (at->is_steps ? (double)step : at_ns) < at->x)
		return false;
	s->has_struck = true;
	return true;
}

/* Of @what's ranks the first that takes part in @op; NULL: none does. */
static const uint32_t *first_of_op(const struct failure *what, const struct op *op)
{
	for (size_t i = 0; i < what->n_ranks; i++) {
		int64_t rank = membership_rank(&op->comm->members.map, what->ranks[i]);

		if (rank < 0)
			continue;
		if (!op->p2p || op->p2p->pair.rank == rank)
			return &what->ranks[i];
		for (uint32_t k = 0; k < op->p2p->pair.n_calls; k++)
			if (op->p2p->calls[k].peer == rank)
				return &what->ranks[i];
	}
	return NULL;
}

const struct failure *failing_hold(struct failing *f, struct op *op, uint32_t *ret_rank)
{
	const struct wire_arrive *a = &op_first_arrived(op)->arrive;
	struct comm_ops *open = op->comm->open;
	bool is_alike = op->p2p || !open->has_before || op_is_same_call(a, &open->before);
	const struct failure *first = NULL;

	for (size_t i = 0; i < f->n && !op->held; i++) {
		const struct failure *what = f->list[i].what;
		const uint32_t *rank;

		if (!f->list[i].has_struck || what->how == FAILURE_ERROR ||
		    (what->how == FAILURE_DESYNC && is_alike))
			continue;
		rank = first_of_op(what, op);
		if (!rank)
			continue;
		op->held = what->text;
		*ret_rank = *rank;
		first = f->list[i].has_held ? NULL : what;
		f->list[i].has_held = true;
	}
	if (!op->p2p && f->n) {
		open->before = *a;
		open->has_before = true;
	}
	return first;
}

char *failing_why(const struct failure *what, uint32_t rank, char *buf, size_t size)
{
	snprintf(buf, size, "world rank %u %s", rank,
		 what->how == FAILURE_SILENT ? "is gone, and nobody says so"
					     : "calls another op there");
	return buf;
}

const char *failing_unmet(const struct failing_state *s)
{
	if (!s->has_struck)
		return "the run was over before";
	return s->what->how == FAILURE_ERROR || s->has_held ? NULL : "no op was held up by it";
}
