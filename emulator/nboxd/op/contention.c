/* See contention.h. */
#include "nboxd/op/contention.h"

#include <errno.h>

/* What overlap_add() hands to tell(). */
struct teller {
	void (*moved)(struct run *run);
	bool is_plain;
};

struct move {
	const struct warp *from, *to;
};

static double moved_end(void *ctx, double end)
{
	const struct move *m = ctx;

	return warp_move(m->from, m->to, end);
}

static void tell(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	const struct teller *t = ctx;
	struct move move = {from, to};
	struct run *run = tag;

	for (uint32_t i = 0; i < run->n_posts; i++)
		timeline_move_end(run->posts[i]->node, t->is_plain, moved_end, &move);
	if (t->is_plain)
		return;
	run->waits_ns += warp_end(to) - warp_end(from);
	t->moved(run);
}

int contention_add(struct run *run, bool is_plain, double start, double solo_ns,
		   void (*moved)(struct run *run), const struct warp **ret, struct err *err)
{
	struct ops *ops = run->comm->comms->ops;
	const struct op *op = run->posts[0]->op;
	struct teller teller = {moved, is_plain};
	const struct overlap_sink sink = {tell, &teller};
	struct usage *usage = run->usage;
	int r = 0;

	if (!usage && run->call)
		r = solver_usage(ops->solver, run->comm->number, op->sched, &run->comm->members.map,
				 run->number, NULL, &usage, err);
	if (r == 0 && overlap_add(ops->overlap[is_plain], usage, start, solo_ns, run, &sink, ret))
		r = err_set(err, ENOMEM, "no memory for ops that share the network");
	if (r == 0 && !is_plain)
		run->waits_ns = warp_end(*ret) - start - solo_ns;
	return r;
}

double contention_at(const struct warp *w, double start, double at)
{
	double done = at - start;

	return done > 0 ? at + warp_at(w, done) - (w->bends[0].at + done) : at;
}
