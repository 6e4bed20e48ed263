/* See make.h. */
#include "op/make.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "op/decided.h"
#include "op/ideal.h"
#include "op/moment.h"
#include "op/p2p.h"
#include "op/rule.h"

static void run_freep(struct run **run)
{
	run_free(*run);
}

static int fill_collective(struct run *run, struct op *op, struct err *err)
{
	struct comm *c = op->comm;
	int r;

	run->call = op->call;
	run->border = op->call->has_border ? &op->call->border : NULL;
	run->posts = calloc(op->n_posts, sizeof(struct post *));
	if (!run->posts)
		return err_set(err, ENOMEM, "out of memory");
	for (run->n_posts = 0; run->n_posts < op->n_posts; run->n_posts++)
		run->posts[run->n_posts] = &op->posts[run->n_posts];
	for (uint32_t i = 0; i < op->n_flows; i++) {
		op->flows[i].out = i;
		op->flows[i].turn = run->turn;
		op->flows[i].run = run;
	}
	moment_of_run(run);
	asked_add(&c->ops->asked, op->sched->kind, op->sched->bytes, c->n_ranks);
	r = solver_solve(c->ops->solver, c->number, op->sched, &c->members.map, run->border,
			 run->number, &run->timing, err);
	if (r < 0)
		return r;
	decided_count(run);
	ideal_apply(c, &run->timing);
	return 0;
}

int run_make(struct op *op, struct pair_post *ready, struct run **ret, struct err *err)
{
	CLEANUP(run_freep) struct run *run = calloc(1, sizeof(*run));
	int r;

	if (!run)
		return err_set(err, ENOMEM, "out of memory");
	run->comm = op->comm;
	run->number = ready ? op->comm->ops->n_ops++ : op->number;
	run->turn = run->number + 1;
	moment_of_op(op);
	r = ready ? p2p_fill_run(run, ready, err) : fill_collective(run, op, err);
	if (r == 0)
		r = rule_apply(run, err);
	if (r < 0)
		return r;
	DL_APPEND(run->comm->open->runs, run);
	for (uint32_t i = 0; i < run->n_posts; i++)
		run->posts[i]->op->n_runs++;
	*ret = steal_ptr(run);
	return 0;
}
