/* See messages.h. */
#include "op/messages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/record.h"
#include "op/awaited.h"
#include "op/batch.h"
#include "op/contention.h"
#include "op/moment.h"
#include "op/p2p-start.h"
#include "op/resharding.h"

/* --- calls --------------------------------------------------------------------------------- */

bool messages_are_alltoall(const struct op *op)
{
	uint32_t n = op->comm->n_ranks;
	CLEANUP(bitmap_deinit) struct bitmap met = {0};

	if (op->p2p->matrix)
		return true;
	if (op->p2p->pair.is_onesided || n <= 2 || op->n_flows + 2 < 2 * n ||
	    bitmap_init(&met, 2 * (uint64_t)n) < 0)
		return false;
	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];

		if (call->peer != op->posts[0].member->rank)
			bitmap_set(&met, 2 * (uint64_t)call->peer + call->is_send);
	}
	return bitmap_count(&met) + 2 == 2 * (uint64_t)n;
}

static bool has_message(const struct op *op, uint32_t k)
{
	const struct sched_p2p *call = &op->p2p->calls[k];

	return call->bytes && call->peer != op->posts[0].member->rank;
}

static bool is_real(const struct op *op, uint32_t k)
{
	return bitmap_test(&op->comm->is_real, op->p2p->calls[k].peer);
}

/* The other end of call @k; NULL: it has not come, or is virtual. */
static struct post *peer_of(const struct op *op, uint32_t k, uint32_t *ret_call)
{
	const struct pair_call *pair = op->p2p->pair.calls[k].pair;

	if (!pair)
		return NULL;
	*ret_call = (uint32_t)(pair - pair->post->calls);
	return &container_of(pair->post, struct p2p, pair)->op->posts[0];
}

/* --- claims ----------------------------------------------------------------------------------- */

/* @a's @call is over at @at, as long as @c goes on so; NULL: it uses no links. */
static void await_claim(struct claim *c, struct awaited *a, uint32_t call, bool is_plain,
			uint64_t number, double at, double alone, double ns)
{
	struct awaited_call *of = &a->of[call];

	of->at[is_plain] = at;
	of->alone[is_plain] = alone;
	of->ns[is_plain] = ns;
	of->number[is_plain] = number;
	if (c)
		c->of[c->n++] = (struct claimed){.post = awaited_ref(a),
						 .call = call,
						 .sent = UINT32_MAX,
						 .end = at};
}

/* The last op in the queue of the post's rank. */
static uint64_t *last_of(const struct post *post)
{
	const struct comm *c = post->op->comm;

	return c->open->members[post->member - c->real].claimed;
}

/* Claims the links from @op->begin on. *@ret_c NULL: it needs none. */
static int claim_batch(const struct batch *p, struct overlap_op op, struct claim **ret_c,
		       struct contention *ret, struct err *err)
{
	struct claim *c;
	int r;

	*ret = (struct contention){0};
	*ret_c = NULL;
	if (!(op.solo_ns > 0))
		return 0;
	r = batch_usage(p, &op.usage, err);
	if (r < 0)
		return r;
	c = claim_new(p->is_plain, 2 * p->n); /* two ends of each message wait for it */
	if (!c)
		return err_set(err, ENOMEM, "no memory for ops that share the network");
	c->p2p = p->post->op->p2p;
	r = contention_claim(p->post, c, &op, ret, err);
	if (r == 0)
		*ret_c = c;
	p->post->op->p2p->is_below_bound |= r == 0 && ret->is_below_bound;
	return r;
}

static double at_of(const struct contention *got, double start, double ns)
{
	return got->warp ? contention_at(got->warp, start, start + ns) : start + ns;
}

/* --- what a post sends --------------------------------------------------------------------- */

/* Whether the buffers need not hold all of message @k back: they take it, or who receives it is
 * there. */
static bool is_free(const struct op *op, uint32_t k, bool is_plain, double start)
{
	uint32_t call;
	const struct post *peer = peer_of(op, k, &call);

	return p2p_buffered(op, op->p2p->calls[k].bytes) >= 1 || !is_real(op, k) ||
	       (peer && post_start(peer, is_plain) <= start);
}

/* When the sender is over with a message that the buffers do not take, of which @got carries
 * @bytes, or with a put: when that is there. */
static void await_sender(const struct batch *p, struct claim *c, const struct contention *got,
			 uint32_t i, double start)
{
	struct op *op = p->post->op;
	uint32_t k = p->index[i];
	double all = (double)op->p2p->calls[k].bytes;
	double taken = op->p2p->pair.is_onesided ? 0 : (double)p2p_buffer_bytes(op);
	double ns = p->ns[i] * fmin(1, (all - taken) / (double)p->calls[i].bytes);

	if (all > taken)
		await_claim(c, op->p2p->awaited, k, p->is_plain, got->number, at_of(got, start, ns),
			    start + ns + got->later_ns, p->ns[i] + got->later_ns);
}

/* It begins behind the op before in its rank's queue, and behind the message before that goes the
 * same way: that one has the buffers. */
static int line_up(const struct batch *p, struct overlap_op *ret, struct err *err)
{
	const struct post *post = p->post;
	struct comm *c = post->op->comm;
	double start = post_start(post, p->is_plain), end;
	uint64_t *last;

	*ret = (struct overlap_op){
		.solo_ns = batch_ns(p),
		.start = fmin(start,
			      p->is_plain ? timeline_plain_arrival(post->node)
					  : timeline_arrival(post->node, post->member->world_rank)),
		.begin = start,
		.after = last_of(post)[p->is_plain]};
	if (!batch_has_one_peer(p) || !is_real(post->op, p->index[0]))
		return 0;
	last = pairing_note(&c->open->pairing, post->member->rank, p->calls[0].peer);
	if (!last)
		return err_set(err, ENOMEM, "out of memory");
	end = overlap_end(c->ops->overlap[p->is_plain], last[p->is_plain]);
	if (end > start) {
		ret->start = start;
		ret->begin = end;
		ret->after = last[p->is_plain];
	}
	return 0;
}

/* What comes after message @i of @p on its way comes behind claim @number. */
static void be_last(const struct batch *p, uint32_t i, uint64_t number)
{
	struct comm *c = p->post->op->comm;
	uint64_t *last = pairing_note(&c->open->pairing, p->post->member->rank, p->calls[i].peer);

	if (last)
		last[p->is_plain] = number;
}

/* For waits for what virtual ranks put alike. */
static void note_puts(struct post *post, bool is_plain, double start)
{
	struct pair_post *pair = &post->op->p2p->pair;

	for (uint32_t k = 0; pair->is_onesided && k < pair->n_calls; k++) {
		double *began = pair->calls[k].is_send
					? pairing_began(&post->op->comm->open->pairing, pair,
							&pair->calls[k])
					: NULL;

		if (began)
			began[is_plain] = start;
	}
}

static int send_all(struct post *post, bool is_plain, uint64_t number, struct err *err)
{
	CLEANUP(batch_deinit) struct batch p;
	struct op *op = post->op;
	double start = post_start(post, is_plain), *from = &op->p2p->awaited->from[is_plain];
	struct contention got;
	struct overlap_op as;
	struct claim *c;
	int r = batch_init(&p, post, is_plain, number, err);

	note_puts(post, is_plain, start);
	for (uint32_t k = 0; k < op->n_flows && r == 0; k++)
		if (op->p2p->calls[k].is_send && has_message(op, k))
			batch_add(&p, k,
				  is_free(op, k, is_plain, start) ? op->p2p->calls[k].bytes
								  : p2p_buffer_bytes(op));
	if (r < 0 || p.n == 0)
		return r;
	r = batch_solve(&p, err);
	if (r == 0)
		r = line_up(&p, &as, err);
	if (r == 0)
		r = claim_batch(&p, as, &c, &got, err);
	for (uint32_t i = 0; i < p.n && r == 0; i++) {
		struct message *m = &op->p2p->sent[p.index[i]];

		m->claim[is_plain] = c;
		m->number[is_plain] = got.number;
		m->at[is_plain] = at_of(&got, as.begin, p.ns[i]);
		m->ns[is_plain] = p.ns[i] + got.later_ns;
		m->alone[is_plain] = start + m->ns[is_plain];
		m->is_part[is_plain] = p.calls[i].bytes < op->p2p->calls[p.index[i]].bytes;
		if (c) {
			m->entry[is_plain] = c->n;
			c->of[c->n++] =
				(struct claimed){.sent = p.index[i], .end = m->at[is_plain]};
		}
		await_sender(&p, c, &got, i, as.begin);
		if (is_real(op, p.index[i]))
			be_last(&p, i, got.number);
	}
	if (r < 0)
		return r;
	*from = fmax(*from, start + batch_extra_ns(&p.timing, is_plain));
	if (!is_plain || op->p2p->plan)
		op->p2p->timing = p.timing;
	return 0;
}

static void copy_plain(struct p2p *p2p)
{
	for (uint32_t k = 0; k < p2p->pair.n_calls; k++) {
		struct awaited_call *of = &p2p->awaited->of[k];
		struct message *m = &p2p->sent[k];

		of->at[1] = of->at[0];
		of->alone[1] = of->alone[0];
		of->ns[1] = of->ns[0];
		m->at[1] = m->at[0];
		m->ns[1] = m->ns[0];
	}
	p2p->awaited->from[1] = p2p->awaited->from[0];
}

static int begin(struct post *post, struct err *err)
{
	struct p2p *p2p = post->op->p2p;
	struct ops *ops = post->op->comm->ops;
	uint64_t number = ops->n_ops;
	int r;

	if (!p2p->awaited)
		p2p->awaited = awaited_new(ops, post->node, post->op->n_flows);
	p2p->sent = calloc((size_t)post->op->n_flows + 1, sizeof(*p2p->sent));
	if (!p2p->awaited || !p2p->sent)
		return err_set(err, ENOMEM, "out of memory");
	r = p2p->plan ? resharding_send(post, err) : send_all(post, false, number, err);
	if (r == 0 && config_moves_times(ops->config))
		r = send_all(post, true, number, err);
	else
		copy_plain(p2p);
	return r;
}

bool messages_wait_for_nobody(const struct op *op)
{
	for (uint32_t k = 0; op->p2p->sent && k < op->n_flows; k++)
		if (!op->p2p->calls[k].is_send || !has_message(op, k) ||
		    p2p_buffered(op, op->p2p->calls[k].bytes) < 1)
			return false;
	return op->p2p->sent;
}

int messages_sent(struct post *post, struct err *err)
{
	struct op *op = post->op;

	if (!op->p2p || timeline_is_queued(post->node) || messages_are_alltoall(op))
		return 0;
	moment_of_op(op);
	return begin(post, err);
}

/* --- what a run plays of it ---------------------------------------------------------------- */

/* The rest of message @k, which the buffers did not take, goes on when both are there. */
static int send_rest(struct post *post, uint32_t k, bool is_plain, uint64_t number, struct err *err)
{
	CLEANUP(batch_deinit) struct batch p;
	struct op *op = post->op;
	const struct message *m = &op->p2p->sent[k];
	uint64_t bytes = op->p2p->calls[k].bytes, taken = p2p_buffer_bytes(op);
	double there, begin, alone, all_ns, ns, handed;
	struct contention got;
	struct post *to;
	struct claim *c;
	uint32_t call = 0;
	int r = batch_init(&p, post, is_plain, number, err);

	if (r < 0)
		return r;
	to = peer_of(op, k, &call);
	there = post_start(to, is_plain);
	batch_add(&p, k, bytes);
	r = batch_solve(&p, err);
	all_ns = p.ns[0];
	p.calls[0].bytes = taken;
	if (r == 0)
		r = batch_solve(&p, err);
	p.calls[0].bytes = bytes - taken;
	ns = all_ns - p.ns[0];
	begin = fmax(m->at[is_plain], there);
	alone = fmax(m->alone[is_plain], there);
	if (r == 0)
		r = claim_batch(&p,
				(struct overlap_op){.solo_ns = ns,
						    .start = fmin(begin, there),
						    .begin = begin,
						    .after = m->number[is_plain]},
				&c, &got, err);
	if (r < 0)
		return r;
	be_last(&p, 0, got.number);
	await_claim(c, to->op->p2p->awaited, call, is_plain, got.number, at_of(&got, begin, ns),
		    alone + ns + got.later_ns, all_ns + got.later_ns);
	op->p2p->awaited->from[is_plain] = fmax(op->p2p->awaited->from[is_plain], there);
	if (bytes <= 2 * taken)
		return 0;
	handed = ns * (double)(bytes - 2 * taken) / (double)(bytes - taken);
	await_claim(c, op->p2p->awaited, k, is_plain, got.number, at_of(&got, begin, handed),
		    alone + handed + got.later_ns, all_ns + got.later_ns);
	return 0;
}

/* The same of a sender with a plan. Where the receiver is left alone, so is the message: it takes
 * what it takes by itself. */
static int meet_planned(struct post *post, uint32_t k, struct post *to, uint32_t call,
			uint64_t number, struct err *err)
{
	CLEANUP(batch_deinit) struct batch p = {0};
	int r;

	if (!(to->op->p2p->flags & RECORD_LEFT_ALONE))
		return resharding_meet(post, k, to, call, err);
	r = batch_init(&p, post, false, number, err);
	if (r < 0)
		return r;
	batch_add(&p, k, post->op->p2p->calls[k].bytes);
	r = batch_solve(&p, err);
	if (r == 0)
		resharding_meet_plainly(post, k, to, call, p.ns[0]);
	return r;
}

/* Call @k of the sender's is for a real rank, which is there now. */
static int meet(struct post *post, uint32_t k, bool is_plain, uint64_t number, struct err *err)
{
	struct p2p *p2p = post->op->p2p;
	const struct message *m = &p2p->sent[k];
	struct claim *c = m->claim[is_plain];
	uint32_t call = 0;
	struct post *to = peer_of(post->op, k, &call);
	struct awaited *a = to->op->p2p->awaited;

	if (post->op->p2p->plan && !is_plain)
		return meet_planned(post, k, to, call, number, err);
	if (m->is_part[is_plain])
		return send_rest(post, k, is_plain, number, err);
	await_claim(NULL, a, call, is_plain, m->number[is_plain], m->at[is_plain],
		    m->alone[is_plain], m->ns[is_plain]);
	if (c) {
		c->of[m->entry[is_plain]].post = awaited_ref(a);
		c->of[m->entry[is_plain]].call = call;
	}
	return 0;
}

/* A virtual receiver of what the buffers do not take keeps the sender. */
static void wait_for_virtual(const struct run *run, struct post *post, uint32_t k, bool is_plain)
{
	const struct op *op = post->op;
	const struct sched_p2p *call = &op->p2p->calls[k];
	double share = p2p_buffered(op, call->bytes), *from;

	if (share >= 1)
		return;
	from = &op->p2p->awaited->from[is_plain];
	*from = fmax(*from, p2p_start_of(run, post, call->peer, is_plain) +
				    fmax(0, 1 - 2 * share) * op->p2p->sent[k].ns[is_plain]);
}

static bool is_of(const struct run *run, const struct op *op, uint32_t k)
{
	return op->flows[k].turn == run->turn && has_message(op, k);
}

/* When the virtual peer of @post's call @k begins to send: it comes to this op as that says, and
 * has put as long before as this rank itself has. */
static double virtual_start(const struct run *run, struct post *post, uint32_t k, bool is_plain)
{
	struct comm *c = post->op->comm;
	struct pair_post *pair = &post->op->p2p->pair;
	double comes = p2p_start_of(run, post, pair->calls[k].peer, is_plain);
	const double *began = pair->is_onesided ? pairing_like(&c->open->pairing, pair,
							       &pair->calls[k], c->n_ranks)
						: NULL;
	bool has_plain = config_moves_times(c->ops->config);

	return began ? began[is_plain && has_plain] + comes - post_start(post, is_plain) : comes;
}

/* What virtual ranks send to @post, each from its own arrival on: one claim, as late as it can be.
 */
static int from_virtual(const struct run *run, struct post *post, bool is_plain, struct err *err)
{
	CLEANUP(batch_deinit) struct batch p;
	CLEANUP(freep) double *ends = NULL;
	const struct op *op = post->op;
	double begin = -INFINITY, first = INFINITY, start, end, ns;
	struct contention got;
	struct claim *c;
	int r = batch_init(&p, post, is_plain, run->number, err);

	p.is_received = true;
	for (uint32_t k = 0; k < op->n_flows && r == 0; k++)
		if (!op->p2p->calls[k].is_send && is_of(run, op, k) && !is_real(op, k)) {
			batch_add(&p, k, op->p2p->calls[k].bytes);
			ns = virtual_start(run, post, k, is_plain);
			begin = fmax(begin, ns);
			first = fmin(first, ns);
		}
	if (r < 0 || p.n == 0)
		return r;
	r = batch_solve(&p, err);
	if (r == 0 && !op->p2p->pair.is_onesided) {
		ends = malloc(op->comm->n_ranks * sizeof(*ends));
		r = ends ? batch_ends(&p, run, ends, err) : err_set(err, ENOMEM, "out of memory");
	}
	if (r < 0)
		return r;
	/* what was put may be there before this rank waits */
	ns = batch_ns(&p);
	end = ends ? ends[post->member->rank] : fmax(first + ns, begin + ns / p.n);
	start = ends ? fmax(begin, end - ns) : end - ns;
	for (uint32_t k = 0; k < op->n_flows; k++) /* whose copies do the same */
		if (op->p2p->calls[k].is_send && is_of(run, op, k))
			p.calls[p.n_all++] = op->p2p->calls[k];
	end = fmin(end, start + batch_ns(&p));
	r = claim_batch(
		&p, (struct overlap_op){.solo_ns = batch_ns(&p), .start = start, .begin = start},
		&c, &got, err);
	if (r == 0)
		await_claim(c, op->p2p->awaited, p.index[0], is_plain, got.number,
			    at_of(&got, start, end - start), end + got.later_ns,
			    batch_ns(&p) + got.later_ns);
	return r;
}

static int play(struct run *run, bool is_plain, struct err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		struct post *post = run->posts[i];
		const struct op *op = post->op;
		double *from = &op->p2p->awaited->from[is_plain];
		bool is_planned = op->p2p->plan && !is_plain;

		if (is_planned)
			r = resharding_virtual(run, post, err);
		else
			*from = fmax(*from, post_start(post, is_plain) +
						    batch_extra_ns(&run->timing, is_plain));
		for (uint32_t k = 0; k < op->n_flows && r == 0; k++) {
			if (!op->p2p->calls[k].is_send || !is_of(run, op, k))
				continue;
			if (is_real(op, k))
				r = meet(post, k, is_plain, run->number, err);
			else if (!is_planned)
				wait_for_virtual(run, post, k, is_plain);
		}
		if (r == 0 && !is_planned)
			r = from_virtual(run, post, is_plain, err);
	}
	return r;
}

/* The next ops of its ranks come after what they are over with last. */
static void queue_up(const struct run *run, bool is_plain)
{
	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *post = run->posts[i];
		const struct awaited_call *last = awaited_last(post->op->p2p->awaited, is_plain);

		if (last && last->number[is_plain])
			last_of(post)[is_plain] = last->number[is_plain];
	}
}

int messages_play(struct run *run, struct err *err)
{
	bool has_plain = config_moves_times(run->comm->ops->config);
	int r = 0;

	for (uint32_t i = 0; i < run->n_posts && r == 0; i++) {
		if (!run->posts[i]->op->p2p->sent)
			r = begin(run->posts[i], err);
		if (r == 0)
			run->posts[i]->op->p2p->awaited->run = run;
	}
	if (r == 0)
		r = play(run, false, err);
	if (r == 0 && has_plain)
		r = play(run, true, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < run->n_posts && !has_plain; i++)
		copy_plain(run->posts[i]->op->p2p);
	queue_up(run, false);
	queue_up(run, true);
	return 0;
}
