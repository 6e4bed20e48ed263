/* See start.h. */
#include "op/start.h"

#include "op/decided.h"
#include "op/make.h"
#include "op/messages.h"
#include "op/rule.h"

static void release(struct post *post)
{
	post->is_released = true;
	post->op->comm->ops->sink->released(post);
}

/* The posts of @op, a collective that waits for members, whose ends depend on none of those. */
static int release_early(struct op *op, struct err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < op->n_posts && r >= 0; i++) {
		struct post *post = &op->posts[i];

		if (!post->has_arrived || post->is_released)
			continue;
		r = rule_apply_early(op, post, err);
		if (r == 0)
			release(post);
	}
	return r < 0 ? r : 0;
}

/* The buffers of an op with a root are free: the one that has waited for them goes on. */
static int go_ahead(struct comm *c, struct err *err)
{
	struct op *op, *next;

	c->open->n_started++;
	HASH_ITER(hh, c->open->ops, op, next)
		if (op->rooted == c->open->n_started + ROOTED_AHEAD_MAX)
			return release_early(op, err);
	return 0;
}

static int start(struct op *op, struct pair_post *ready, struct err *err)
{
	const struct ops_sink *sink = op->comm->ops->sink;
	struct comm *c = op->comm;
	bool has_root = op->rooted;
	struct run *run;
	int r = run_make(op, ready, &run, err);

	if (r == 0 && sink->play)
		r = sink->play(run, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < run->n_posts; i++)
		if (!run->posts[i]->is_released &&
		    (!ready || run->posts[i]->op->p2p->pair.n_waiting == 0))
			release(run->posts[i]);
	if (!sink->play)
		run_end(run);
	return has_root ? go_ahead(c, err) : 0;
}

int op_start(struct post *post, struct err *err)
{
	struct op *op = post->op;
	const struct ops_sink *sink = op->comm->ops->sink;
	struct pair_post *ready = NULL;
	bool is_ready;
	int r = decided_take(post, err);

	if (r < 0)
		return r;
	post->has_arrived = true;
	op->n_arrived++;
	r = rule_is_ready(op, &ready, err);
	if (r < 0)
		return r;
	if (sink->is_lost && sink->is_lost(op))
		return 0;
	is_ready = r;
	r = messages_sent(post, err);
	if (r < 0)
		return r;
	return is_ready ? start(op, ready, err) : release_early(op, err);
}
