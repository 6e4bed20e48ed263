/* See resharding.h. */
#include "op/resharding.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "engine/record.h"
#include "op/awaited.h"
#include "op/p2p-start.h"
#include "op/resharding-step.h"

/* --- which posts ----------------------------------------------------------------------------- */

static uint32_t world_of(const struct op *op, uint32_t rank)
{
	return membership_world(&op->comm->members.map, rank);
}

static uint32_t self_of(const struct op *op)
{
	return op->posts[0].member->world_rank;
}

static uint32_t place_of(const struct resharding *x, uint32_t world_rank)
{
	return world_rank < x->n_world ? x->place[world_rank] : RESHARDING_NOWHERE;
}

/* The pair that call @k joins, by numbers among senders and receivers. Return: whether it goes from
 * one of @x's senders to one of its receivers. */
static bool is_between(const struct resharding *x, const struct op *op, uint32_t k,
		       uint32_t *ret_sender, uint32_t *ret_receiver)
{
	const struct sched_p2p *call = &op->p2p->calls[k];
	uint32_t own = place_of(x, self_of(op)), peer = place_of(x, world_of(op, call->peer));
	uint32_t from = call->is_send ? own : peer, to = call->is_send ? peer : own;

	if (from >= x->n_senders || to == RESHARDING_NOWHERE || to < x->n_senders)
		return false;
	*ret_sender = from;
	*ret_receiver = to - x->n_senders;
	return true;
}

/* What receiver @own needs: of all that the senders have of it, each element once. */
static bool has_all(const struct resharding *x, const struct op *op, uint64_t received)
{
	return received == x->needs[place_of(x, self_of(op)) - x->n_senders];
}

static void leave_alone(struct op *op, const struct resharding *x, const char *why)
{
	struct ops *ops = op->comm->ops;

	op->p2p->flags = RECORD_LEFT_ALONE;
	if (!ops->is_left_alone_told)
		ops_warn(
			ops,
			"what-if %.40s...: a group of calls between its ranks is not the step that it declares, and keeps the times of "
			"plain sends: rank %u %s",
			x->text, self_of(op), why);
	ops->is_left_alone_told = true;
}

/* Whether @op is one rank's part of @x, or looks like it. */
static bool is_declared(struct op *op, const struct resharding *x)
{
	const struct sched_p2p *calls = op->p2p->calls;
	uint32_t n_other = 0, n_between = 0, from, to;
	uint64_t bytes, step, received = 0;
	char why[160] = "", a[32], b[32];

	for (uint32_t k = 0; k < op->n_flows; k++) {
		if (!is_between(x, op, k, &from, &to)) {
			n_other++;
			continue;
		}
		bytes = x->bytes[(size_t)from * x->n_receivers + to];
		step = resharding_step_next(op->comm->ops, x, from, to, calls[k].is_send);
		op->p2p->step = n_between ? op->p2p->step : step;
		n_between++;
		received += calls[k].is_send ? 0 : calls[k].bytes;
		if (calls[k].bytes != bytes && !why[0])
			snprintf(why, sizeof(why), "%s %s %s rank %u, where the tensor has %s",
				 calls[k].is_send ? "sends" : "receives",
				 units_print_bytes(calls[k].bytes, a, sizeof(a)),
				 calls[k].is_send ? "to" : "from", world_of(op, calls[k].peer),
				 units_print_bytes(bytes, b, sizeof(b)));
	}
	if (!n_between)
		return false;
	if (n_other)
		snprintf(why, sizeof(why), "has calls with others in it");
	else if (!why[0] && !calls[0].is_send && !has_all(x, op, received))
		snprintf(why, sizeof(why), "receives %s in one group, where its tile has %s",
			 units_print_bytes(received, a, sizeof(a)),
			 units_print_bytes(x->needs[place_of(x, self_of(op)) - x->n_senders], b,
					   sizeof(b)));
	if (why[0])
		leave_alone(op, x, why);
	else
		op->p2p->plan = x;
	return true;
}

/* Whether all go one way, and not to one rank alone. */
static bool is_one_sided(const struct op *op)
{
	const struct sched_p2p *calls = op->p2p->calls;
	bool has_two = false;

	for (uint32_t k = 0; k < op->n_flows; k++) {
		if (calls[k].is_send != calls[0].is_send ||
		    world_of(op, calls[k].peer) == self_of(op))
			return false;
		has_two |= calls[k].peer != calls[0].peer;
	}
	return has_two;
}

/* --- what is assumed ------------------------------------------------------------------------- */

/* The other ranks of the rank's node that are in the communicator share its NICs with it. */
static struct mesh_net net_of(const struct op *op, const struct resharding *x)
{
	const struct topology *t = op->comm->ops->cluster->topology;
	uint32_t first = topology_node(t, self_of(op)) * t->gpus_per_node, n = 0;
	struct mesh_net net = x->net;

	for (uint32_t i = 0; i < t->gpus_per_node; i++)
		n += membership_rank(&op->comm->members.map, first + i) >= 0;
	net.nic /= n;
	return net;
}

/* Nodes that @n calls go to, and the most of them to one. */
static struct mesh_group group_of(const struct op *op, const uint32_t *calls, uint32_t n)
{
	const struct topology *t = op->comm->ops->cluster->topology;
	struct mesh_group to = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = topology_node(t, world_of(op, op->p2p->calls[calls[i]].peer));
		uint32_t n_there = 0, n_before = 0;

		for (uint32_t j = 0; j < n; j++) {
			uint32_t peer = op->p2p->calls[calls[j]].peer;
			bool is_there = topology_node(t, world_of(op, peer)) == node;

			n_there += is_there;
			n_before += is_there && j < i;
		}
		to.hosts += n_before == 0;
		to.devices = n_there > to.devices ? n_there : to.devices;
	}
	return to;
}

/* A rank's slices go, or come, one after the other: of equal sends one, of receives each. */
static int assume(struct op *op, const struct resharding *x)
{
	const struct sched_p2p *calls = op->p2p->calls;
	const struct mesh_net net = net_of(op, x);
	CLEANUP(freep) uint32_t *slice = malloc(op->n_flows * sizeof(*slice));
	double *ns = malloc(op->n_flows * sizeof(*ns)), at = 0;

	op->p2p->assumed_ns = ns;
	if (!slice || !ns)
		return -ENOMEM;
	for (uint32_t k = 0; k < op->n_flows; k++)
		ns[k] = -1;
	for (uint32_t k = 0; k < op->n_flows; k++) {
		uint32_t n = 0;

		for (uint32_t i = k; ns[k] < 0 && i < op->n_flows; i++)
			if (i == k || (calls[k].is_send && calls[i].bytes == calls[k].bytes))
				slice[n++] = i;
		if (n && calls[k].bytes)
			at += mesh_strategy_ns(x->strategy, calls[k].bytes, group_of(op, slice, n),
					       &net);
		for (uint32_t i = 0; i < n; i++)
			ns[slice[i]] = at;
	}
	return 0;
}

static bool is_planned(struct op *op, const struct resharding *x, int *ret)
{
	if (x->n_senders)
		return is_declared(op, x);
	if (!is_one_sided(op))
		return false;
	op->p2p->plan = x;
	op->p2p->flags = RECORD_PLAN_ASSUMED;
	*ret = assume(op, x);
	return true;
}

int resharding_find(struct op *op)
{
	struct ops *ops = op->comm->ops;
	const struct config *c = ops->config;
	int r = 0;

	for (size_t i = 0; i < c->n_reshardings && op->n_flows; i++) {
		if (!is_planned(op, &c->reshardings[i], &r))
			continue;
		if (op->p2p->plan) {
			op->p2p->flags |= RECORD_PLANNED;
			ops->planned |= UINT64_C(1) << (i & 63);
		}
		break;
	}
	return r;
}

/* --- when they are over ---------------------------------------------------------------------- */

static double done_ns(const struct resharding *x, uint32_t world_rank)
{
	uint32_t place = place_of(x, world_rank);

	return place == RESHARDING_NOWHERE ? 0 : x->done_ns[place];
}

/* How long after its beginning call @k is over at the caller. */
static double own_ns(const struct op *op, uint32_t k)
{
	const struct resharding *x = op->p2p->plan;

	return x->n_senders ? done_ns(x, self_of(op)) : op->p2p->assumed_ns[k];
}

static void over(struct awaited *a, uint32_t call, double begin, double ns)
{
	struct awaited_call *of = &a->of[call];

	of->at[0] = of->alone[0] = begin + ns;
	of->ns[0] = ns;
	of->number[0] = 0;
}

/* The same in a step of @post's plan. */
static int over_in(struct post *post, uint64_t step, struct awaited *a, uint32_t call, double begin,
		   double ns, struct err *err)
{
	over(a, call, begin, ns);
	return ns > 0 && post->op->p2p->plan->n_senders
		       ? resharding_step_add(post, step, begin, a, call, err)
		       : 0;
}

/* Who sends nothing in the plan waits for nobody. */
static int over_sent(struct post *post, uint64_t step, uint32_t k, double start, double begin,
		     struct err *err)
{
	double ns = own_ns(post->op, k);

	return over_in(post, step, post->op->p2p->awaited, k, ns > 0 ? begin : start, ns, err);
}

static bool is_real(const struct op *op, uint32_t k)
{
	return bitmap_test(&op->comm->is_real, op->p2p->calls[k].peer);
}

static bool is_buffered(const struct op *op, uint32_t k)
{
	return p2p_buffered(op, op->p2p->calls[k].bytes) >= 1;
}

int resharding_send(struct post *post, struct err *err)
{
	struct op *op = post->op;
	double start = post_start(post, false), *from = &op->p2p->awaited->from[0];
	int r = 0;

	*from = fmax(*from, start);
	for (uint32_t k = 0; k < op->n_flows && r == 0; k++)
		if (op->p2p->calls[k].is_send && is_buffered(op, k))
			r = over_sent(post, op->p2p->step, k, start, start, err);
	return r;
}

int resharding_meet(struct post *post, uint32_t k, struct post *to, uint32_t call, struct err *err)
{
	const struct op *op = post->op;
	const struct resharding *x = op->p2p->plan;
	double start = post_start(post, false), begin = fmax(start, post_start(to, false));
	double own = own_ns(op, k), there = x->n_senders ? done_ns(x, self_of(to->op)) : own;
	uint64_t step = to->op->p2p->step;
	int r;

	if (!x->n_senders && to->op->p2p->plan == x)
		there = fmax(there, own_ns(to->op, call));
	r = over_in(post, step, to->op->p2p->awaited, call, begin, there, err);
	return r == 0 && !is_buffered(op, k) ? over_sent(post, step, k, start, begin, err) : r;
}

void resharding_meet_plainly(struct post *post, uint32_t k, struct post *to, uint32_t call,
			     double ns)
{
	struct op *op = post->op;
	double begin = fmax(post_start(post, false), post_start(to, false));

	op->p2p->flags = RECORD_LEFT_ALONE;
	over(to->op->p2p->awaited, call, begin, ns);
	if (!is_buffered(op, k))
		over(op->p2p->awaited, k, begin, ns);
}

/* A virtual rank whose template calls in the run comes as that did. Any other one comes with
 * @post: where its template was last seen it may have been through this step already. */
static double virtual_start(const struct run *run, const struct post *post, uint32_t rank)
{
	uint32_t world_rank = world_of(post->op, rank);
	uint32_t template = timelines_template(run->comm->ops->timelines, world_rank);

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i]->member->world_rank == template)
			return p2p_start(run, post, world_rank, false);
	return post_start(post, false);
}

int resharding_virtual(const struct run *run, struct post *post, struct err *err)
{
	struct op *op = post->op;
	uint64_t step = op->p2p->step;
	double start = post_start(post, false);
	int r = 0;

	for (uint32_t k = 0; k < op->n_flows && r == 0; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];

		double begin = fmax(start, virtual_start(run, post, call->peer));

		if (op->flows[k].turn != run->turn || is_real(op, k))
			continue;
		if (!call->is_send)
			r = over_in(post, step, op->p2p->awaited, k, begin, own_ns(op, k), err);
		else if (!is_buffered(op, k))
			r = over_sent(post, step, k, start, begin, err);
	}
	return r;
}

/* Those that copy the post do as it does, so long after they or the last one that it waited for
 * came; those that have a part of their own in the plan take the time of that. Who shares links
 * is later. */
int resharding_end(struct post *post, double end, double plain_end)
{
	const struct p2p *p2p = post->op->p2p;
	const struct resharding *x = p2p->plan;
	uint32_t n, self = self_of(post->op);
	const uint32_t *ranks = timeline_ranks(post->node, &n);
	double start = post_start(post, false), alone = awaited_alone(p2p->awaited);
	double own = alone - start, begin = start;
	bool is_alike = timeline_is_folded(post->node);
	CLEANUP(freep) double *ends = malloc(n * sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	if (x->n_senders) {
		own = fmin(own, done_ns(x, self));
		begin = alone - own;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool has_part = x->n_senders && place_of(x, ranks[i]) != RESHARDING_NOWHERE;
		double ns = has_part ? done_ns(x, ranks[i]) : own;
		double at = fmax(begin, timeline_start(post->node, ranks[i])) + ns, shared = NAN;

		is_alike &= ns == own;
		if (ns > 0 && ranks[i] != self && x->n_senders)
			shared = resharding_step_at(post->op->comm->ops, x, p2p->step, at);
		ends[i] = isnan(shared) ? at + (end - alone) : shared;
	}
	return is_alike ? timeline_end_all(post->node, end, plain_end)
			: timeline_end_each(post->node, ends, plain_end);
}
