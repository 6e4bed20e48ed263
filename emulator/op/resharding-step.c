/* See resharding-step.h. */
#include "op/resharding-step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "contention/usage-maker.h"
#include "fabric/link-number.h"
#include "op/awaited.h"
#include "op/contention.h"

/* A step that was begun. */
struct resharding_step {
	uint64_t number, claimed; /* claimed: its number in the overlap */
	double begin;             /* of the first rank */
	double later_ns;          /* what links do to it by itself */
	struct claim *claim;      /* borrowed; NULL: the overlap has forgotten it */
	struct resharding_step *next;
};

/* Of one of config->reshardings. */
struct resharding_steps {
	struct usage *usage;  /* a reference; of each step; NULL: there was none yet */
	uint32_t *n_calls[2]; /* owned; by sender and receiver, as [1] the one calls them, [0]
				 the other */
	struct resharding_step *steps; /* owned; the last one first */
	uint64_t n_begun;
};

int resharding_steps_open(struct ops *ops)
{
	const struct config *c = ops->config;

	ops->steps_of = calloc(c->n_reshardings + 1, sizeof(*ops->steps_of));
	for (size_t i = 0; ops->steps_of && i < c->n_reshardings; i++) {
		const struct resharding *x = &c->reshardings[i];
		size_t n = (size_t)x->n_senders * x->n_receivers + 1;

		for (int k = 0; k < 2; k++) {
			ops->steps_of[i].n_calls[k] = calloc(n, sizeof(uint32_t));
			if (!ops->steps_of[i].n_calls[k])
				return -ENOMEM;
		}
	}
	return ops->steps_of ? 0 : -ENOMEM;
}

void resharding_steps_close(struct ops *ops)
{
	for (size_t i = 0; ops->steps_of && i < ops->config->n_reshardings; i++) {
		struct resharding_steps *of = &ops->steps_of[i];
		struct resharding_step *s, *next;

		LL_FOREACH_SAFE(of->steps, s, next)
			free(s);
		usage_unref(of->usage);
		free(of->n_calls[0]);
		free(of->n_calls[1]);
	}
	free(ops->steps_of);
	ops->steps_of = NULL;
}

static struct resharding_steps *steps_of(const struct ops *ops, const struct resharding *x)
{
	return &ops->steps_of[x - ops->config->reshardings];
}

uint64_t resharding_step_next(const struct ops *ops, const struct resharding *x, uint32_t sender,
			      uint32_t receiver, bool is_send)
{
	return steps_of(ops, x)->n_calls[is_send][(size_t)sender * x->n_receivers + receiver]++;
}

/* --- its links ------------------------------------------------------------------------------- */

/* What goes from a node to another, and what part that is of all that leaves the one, and of all
 * that comes to the other. */
struct stream {
	uint32_t from, to;
	double bytes, part_out, part_in;
};

static int add_link(struct usage_maker *m, const struct stream *s, uint64_t link, double rate,
		    double bytes)
{
	bool is_in = link_direction(link) == LINK_IN;

	return usage_maker_add(m, link, rate, bytes, is_in ? s->part_in : s->part_out, true);
}

static int add_path(struct usage_maker *m, const struct stream *s, const struct fabric *f,
		    uint32_t nic, double bytes)
{
	const struct fabric_class *from = fabric_class_of(f, s->from);
	uint32_t gpu = from->n_nics ? from->nic_gpu[nic] : 0;
	uint64_t links[FABRIC_PATH_MAX];
	uint32_t src, dst;
	int n, r = 0;

	gpu = gpu < f->gpus_per_node ? gpu : f->gpus_per_node - 1;
	src = s->from * f->gpus_per_node + gpu;
	dst = s->to * f->gpus_per_node + gpu;
	n = fabric_path(f, src, dst, nic, links);
	if (n > 0)
		fabric_ecmp(f, src, dst, (uint16_t)nic, links, (uint32_t)n);
	for (int i = 0; i < n && r == 0; i++) {
		struct fabric_link link;

		fabric_link(f, links[i], &link);
		r = add_link(m, s, links[i], link.bytes_per_ns, bytes);
	}
	return r;
}

/* Where there is no plan of ops each rank has a port to other nodes. */
static int add_stream(struct usage_maker *m, const struct ops *ops, const struct stream *s)
{
	const struct topology *t = ops->cluster->topology;
	const struct fabric *f = delay_has_plan(ops->delay) ? delay_fabric(ops->delay) : NULL;
	uint32_t n_nics = f ? fabric_class_of(f, s->from)->n_nics : 0, n = t->gpus_per_node;
	int r = 0;

	for (uint32_t i = 0; f && i < (n_nics ? n_nics : 1) && r == 0; i++)
		r = add_path(m, s, f, i, s->bytes / (n_nics ? n_nics : 1));
	for (uint32_t i = 0; !f && i < n && r == 0; i++) {
		uint64_t out = link_number(LINK_NIC, s->from * n + i, 0, LINK_OUT);
		uint64_t in = link_number(LINK_NIC, s->to * n + i, 0, LINK_IN);

		r = add_link(m, s, out, t->inter.bytes_per_ns, s->bytes / n);
		r = r ? r : add_link(m, s, in, t->inter.bytes_per_ns, s->bytes / n);
	}
	return r;
}

static int make_usage(const struct ops *ops, const struct resharding *x, struct usage **ret)
{
	CLEANUP(usage_maker_deinit) struct usage_maker maker = {0};
	uint32_t n = x->n_hosts;
	int r = 0;

	for (uint32_t i = 0; i < n * n && r == 0; i++) {
		uint32_t from = i / n, to = i % n;
		double out = 0, in = 0;

		for (uint32_t k = 0; k < n; k++) {
			out += x->crossing[from * n + k];
			in += x->crossing[k * n + to];
		}
		if (x->crossing[i] > 0)
			r = add_stream(&maker, ops,
				       &(struct stream){x->nodes[from], x->nodes[to],
							x->crossing[i], x->crossing[i] / out,
							x->crossing[i] / in});
	}
	return r < 0 ? r : usage_maker_end(&maker, ret);
}

/* --- steps ----------------------------------------------------------------------------------- */

/* One that is alive; those that are forgotten go. */
static struct resharding_step *find(struct resharding_steps *of, uint64_t number)
{
	struct resharding_step *s, *next, *found = NULL;

	LL_FOREACH_SAFE(of->steps, s, next) {
		if (!s->claim) {
			LL_DELETE(of->steps, s);
			free(s);
		} else if (s->number == number) {
			found = s;
		}
	}
	return found;
}

/* Behind the last one, whose hosts it needs, or what its rank did before. */
static struct overlap_op line_up(const struct post *post, const struct resharding_steps *of,
				 double begin)
{
	const struct comm *c = post->op->comm;
	const struct resharding_step *last = of->steps;
	double arrival = timeline_arrival(post->node, post->member->world_rank);
	double end = last ? overlap_end(c->ops->overlap[0], last->claimed) : -INFINITY;
	struct overlap_op op = {.usage = of->usage,
				.solo_ns = post->op->p2p->plan->end_ns,
				.start = fmin(begin, arrival),
				.begin = begin,
				.after = c->open->members[post->member - c->real].claimed[0]};

	if (end > begin) {
		op.start = begin;
		op.begin = end;
		op.after = last->claimed;
	}
	return op;
}

static int begin_step(struct post *post, struct resharding_steps *of, uint64_t number, double begin,
		      struct err *err)
{
	struct p2p *p2p = post->op->p2p;
	struct ops *ops = post->op->comm->ops;
	CLEANUP(freep) struct resharding_step *s = calloc(1, sizeof(*s));
	struct claim *c = claim_new(false, 0);
	struct contention got;
	struct overlap_op op;
	int r;

	if (!s || !c || (!of->usage && make_usage(ops, p2p->plan, &of->usage) < 0)) {
		claim_free(c);
		return err_set(err, ENOMEM, "no memory for ops that share the network");
	}
	op = line_up(post, of, begin);
	*s = (struct resharding_step){.number = number, .begin = begin, .claim = c};
	c->held = &s->claim;
	r = contention_claim(post, c, &op, &got, err);
	if (r < 0)
		return r;
	s->claimed = got.number;
	s->later_ns = got.later_ns;
	p2p->is_below_bound |= got.is_below_bound;
	of->n_begun = number + 1;
	LL_PREPEND(of->steps, s);
	steal_ptr(s);
	return 0;
}

int resharding_step_add(struct post *post, uint64_t number, double begin, struct awaited *a,
			uint32_t call, struct err *err)
{
	struct ops *ops = post->op->comm->ops;
	struct resharding_steps *of = steps_of(ops, post->op->p2p->plan);
	struct resharding_step *s = find(of, number);
	struct awaited_call *at = &a->of[call];
	int r = 0;

	if (!s && number >= of->n_begun) {
		r = begin_step(post, of, number, begin, err);
		s = of->steps;
	}
	if (r < 0 || !s)
		return r;
	at->number[0] = s->claimed;
	at->at[0] = warp_at(overlap_warp(ops->overlap[0], s->claimed), at->alone[0] - s->begin);
	at->alone[0] += s->later_ns;
	at->ns[0] += s->later_ns;
	return claim_add(s->claim, &(struct claimed){.post = awaited_ref(a),
						     .call = call,
						     .sent = UINT32_MAX,
						     .end = at->at[0]}) < 0
		       ? err_set(err, ENOMEM, "no memory for ops that share the network")
		       : 0;
}

double resharding_step_at(const struct ops *ops, const struct resharding *x, uint64_t number,
			  double at)
{
	const struct resharding_step *s = find(steps_of(ops, x), number);

	return s ? warp_at(overlap_warp(ops->overlap[0], s->claimed), at - s->later_ns - s->begin)
		 : NAN;
}
