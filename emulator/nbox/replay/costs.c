/* See costs.h. */
#include "nbox/replay/costs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/open-model.h"
#include "dfg/hops.h"
#include "schedule/schedule.h"
#include "schedule/tree.h"

/* Equal ops. */
struct costs_known {
	uint32_t comm, kind, root, algo;
	struct sched_took took;
	uint64_t bytes;
	double alone_ns, whole_ns; /* NAN: not known yet */
	uint64_t hops;             /* UINT64_MAX: so */
};

int costs_open(const struct job *job, const struct config *c, const char *models, struct costs *ret,
	       struct err *err)
{
	const char *dirs[] = {models, NULL};
	int r = 0;

	*ret = (struct costs){.job = job, .config = c, .algo = -1};
	if (!c)
		return 0;
	r = open_model(c, dirs, &ret->delay, err);
	if (r == 0 && solver_new(&c->topology, ret->delay, &ret->solver) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		costs_close(ret);
	else
		delay_set_moment(ret->delay, &(const struct moment){0}, NULL);
	return r;
}

void costs_close(struct costs *c)
{
	solver_free(c->solver);
	delay_free(c->delay);
	free(c->known);
	*c = (struct costs){.n_known = 0};
}

static struct costs_known *find_known(struct costs *c, const struct job_op *op)
{
	struct costs_known *grown;

	for (uint32_t i = 0; i < c->n_known; i++) {
		struct costs_known *k = &c->known[i];

		if (k->comm == op->comm && k->kind == op->kind && k->bytes == op->bytes &&
		    k->root == op->root && k->algo == op->algo &&
		    memcmp(&k->took, &op->took, sizeof(k->took)) == 0)
			return k;
	}
	grown = realloc(c->known, (c->n_known + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	c->known = grown;
	c->known[c->n_known] = (struct costs_known){.comm = op->comm,
						    .kind = op->kind,
						    .root = op->root,
						    .algo = op->algo,
						    .took = op->took,
						    .bytes = op->bytes,
						    .alone_ns = NAN,
						    .whole_ns = NAN,
						    .hops = UINT64_MAX};
	return &c->known[c->n_known++];
}

double *costs_alone(struct costs *c, const struct job_op *op)
{
	struct costs_known *k = find_known(c, op);

	return k ? &k->alone_ns : NULL;
}

/* --- alpha and bandwidth ---------------------------------------------------------------------- */

static int plain_message(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			 uint64_t bytes, struct nbox_delay *ret)
{
	const struct shape *s = ctx;
	const struct topology *t = &s->costs->job->topology;
	enum hop hop = topology_hop(t, membership_world(s->members, src),
				    membership_world(s->members, dst));
	const struct hop_cost *cost = hop == HOP_INTRA ? &t->intra : &t->inter;

	(void)lane;
	(void)index;
	*ret = (struct nbox_delay){.latency_ns = cost->latency_ns,
				   .occupancy_ns = (double)bytes * s->flows[hop == HOP_INTER] /
						   cost->bytes_per_ns};
	return 0;
}

static void make_plain(struct shape *s)
{
	s->flows[0] = s->flows[1] = s->s.algo == SCHED_DIRECT ? 1 : s->s.n_channels;
	if (s->s.algo == SCHED_TREE) {
		sched_tree_edges(&s->s, &s->flows[NBOX_INTER], &s->flows[NBOX_INTRA]);
		s->flows[0] *= s->s.n_channels;
		s->flows[1] *= s->s.n_channels;
	}
	s->cost = (struct sim_cost){.message = plain_message, .ctx = s};
	if (s->costs->job->topology.reduce_bytes_per_ns > 0 && coll_reduces(s->s.kind))
		s->cost.reduce_ns_per_byte = 1 / s->costs->job->topology.reduce_bytes_per_ns;
}

/* --- one op ----------------------------------------------------------------------------------- */

static struct sched sched_of(const struct costs *c, const struct job_op *op)
{
	const struct job_comm *comm = &c->job->comms[op->comm];
	bool is_chosen = c->algo >= 0 && op->kind == COLL_ALLREDUCE;
	struct sched s = {.kind = (enum coll_kind)op->kind,
			  .algo = (enum sched_algo)(is_chosen ? (uint32_t)c->algo : op->algo),
			  .n_ranks = comm->members.n_ranks,
			  .root = op->root,
			  .ranks_per_node = comm->ranks_per_node ? comm->ranks_per_node : 1,
			  .n_channels = c->config ? c->config->channels : 1,
			  .elem_bytes = op->elem_bytes ? op->elem_bytes : 1,
			  .bytes = op->bytes,
			  .chunk_bytes = c->config ? c->config->chunk_bytes : 0,
			  .took = op->took};

	if (!c->config && s.algo == SCHED_RING) /* as the paper's: a chunk is a rank's part */
		s.chunk_bytes = s.bytes;
	return s;
}

/* Who a rank of the schedule does as. */
static uint32_t copied(const struct shape *s, uint32_t rank)
{
	int64_t own = rank;

	if (s->members != &s->comm->members)
		own = membership_rank(&s->comm->members, membership_world(s->members, rank));
	return own < 0 ? 0 : s->comm->copies[own];
}

/* The fewest ranks that stand for all: as many as do different things, at hops that differ. */
static uint32_t find_period(const struct shape *s)
{
	uint32_t n = s->s.n_ranks, base = s->s.ranks_per_node, period;

	if (s->s.algo != SCHED_RING && s->s.algo != SCHED_DIRECT)
		return n;
	if (coll_has_root(s->s.kind) || (s->costs->delay && (!delay_is_uniform(s->costs->delay) ||
							     price_looks_at_ranks(&s->price))))
		return n;
	if (s->is_planned)
		base = s->planned.routes ? price_period(&s->price, n) : n;
	for (period = base; period && period < n; period += base) {
		uint32_t i = period;

		while (n % period == 0 && i < n && copied(s, i) == copied(s, i % period))
			i++;
		if (i == n)
			return period;
	}
	return n;
}

static int make_priced(struct costs *c, struct shape *s, uint64_t number, struct err *err)
{
	int r = 0;

	price_init(&s->price, &s->s, &c->config->topology, &s->comm->members, c->delay, number,
		   err);
	if (delay_has_plan(c->delay) && s->s.n_ranks > 1) {
		r = planned_init(&s->planned, &s->price, &s->s, err);
		s->is_planned = r == 0;
		if (r < 0)
			return r;
		s->is_whole = s->planned.plan.whole_ns >= 0;
		s->lead_ns = s->planned.plan.base_ns;
		s->members = s->price.members;
		s->s = s->planned.s;
	}
	if (s->is_planned || delay_has_message(c->delay))
		s->cost = price_cost(&s->price);
	else
		make_plain(s);
	return r;
}

int shape_make(struct costs *c, const struct job_op *op, struct shape *ret, struct err *err)
{
	int r;

	*ret = (struct shape){.costs = c,
			      .comm = &c->job->comms[op->comm],
			      .members = &c->job->comms[op->comm].members,
			      .whole_ns = -1,
			      .s = sched_of(c, op)};
	r = sched_init(&ret->s, err);
	if (r == 0 && c->delay)
		r = make_priced(c, ret, op->number, err);
	else if (r == 0)
		make_plain(ret);
	if (r < 0)
		return r;
	ret->period = find_period(ret);
	if (c->is_measured && op->ns >= 0)
		ret->whole_ns = op->ns;
	else if (c->delay && !ret->is_planned && delay_has_op(c->delay))
		r = shape_whole(c, op, ret, &ret->whole_ns, err);
	return r;
}

void shape_deinit(struct shape *s)
{
	if (s->is_planned)
		planned_deinit(&s->planned);
}

int costs_hops(struct costs *c, const struct job_op *op, uint64_t *ret, struct err *err)
{
	struct costs_known *known = find_known(c, op);
	struct shape s;
	int r = 0;

	if (!known)
		return err_set(err, ENOMEM, "out of memory");
	if (known->hops == UINT64_MAX) {
		r = shape_make(c, op, &s, err);
		if (r == 0) { /* by which others may have become known */
			known = find_known(c, op);
			known->hops =
				s.is_whole || s.comm->is_alone ? 0 : hops_count(&s.s, s.period);
		}
		shape_deinit(&s);
	}
	if (r == 0)
		*ret = known->hops;
	return r;
}

int shape_whole(struct costs *c, const struct job_op *op, const struct shape *s, double *ret_ns,
		struct err *err)
{
	CLEANUP(timing_deinit) struct timing t = {0};
	struct sched sched = sched_of(c, op);
	struct costs_known *known = find_known(c, op);
	int r = known ? 0 : err_set(err, ENOMEM, "out of memory");

	if (s->whole_ns >= 0) {
		*ret_ns = s->whole_ns;
		return 0;
	}
	if (r == 0 && isnan(known->whole_ns)) {
		r = sched_init(&sched, err);
		if (r == 0)
			r = solver_solve(c->solver, op->comm, &sched, &s->comm->members, NULL, 0,
					 &t, err);
		known->whole_ns = t.end_ns - t.extra_ns;
	}
	if (r == 0)
		*ret_ns = known->whole_ns;
	return r;
}

/* As the record has it; where what-ifs act on messages, that has these, too. */
int shape_extra(struct costs *c, const struct job_op *op, const struct shape *s, double *ret_ns,
		struct err *err)
{
	CLEANUP(timing_deinit) struct timing t = {0};
	struct sched sched = sched_of(c, op);
	int r = 0;

	*ret_ns = op->extra_ns;
	if (!c->delay || !delay_works_on_messages(c->delay))
		return 0;
	r = sched_init(&sched, err);
	if (r == 0)
		r = solver_solve(c->solver, op->comm, &sched, &s->comm->members, NULL, op->number,
				 &t, err);
	*ret_ns = t.extra_ns;
	return r;
}

/* Of a message that is cut into chunks the latency of the last one counts. */
static int add_chunks(const struct sim_cost *cost, uint32_t src, uint32_t dst, uint64_t bytes,
		      uint64_t chunk, struct nbox_delay *ret)
{
	uint64_t n_full = bytes / chunk, rest = bytes % chunk;
	struct nbox_delay full = {0}, last = {0};
	int r = n_full ? cost->message(cost->ctx, src, dst, 0, 0, chunk, &full) : 0;

	if (r == 0 && (rest || !n_full))
		r = cost->message(cost->ctx, src, dst, 0, n_full, rest, &last);
	*ret = (struct nbox_delay){.occupancy_ns =
					   (double)n_full * full.occupancy_ns + last.occupancy_ns,
				   .latency_ns =
					   rest || !n_full ? last.latency_ns : full.latency_ns};
	return r;
}

bool costs_are_whole(const struct costs *c)
{
	return c->delay && !delay_has_plan(c->delay) && !delay_has_message(c->delay);
}

int costs_p2p(struct costs *c, const struct job_op *op, uint32_t src, uint32_t dst, uint64_t bytes,
	      struct nbox_delay *ret, struct err *err)
{
	const struct job_comm *comm = &c->job->comms[op->comm];
	int64_t from = membership_rank(&comm->members, src),
		to = membership_rank(&comm->members, dst);
	struct shape s = {.costs = c,
			  .comm = comm,
			  .members = &comm->members,
			  .s = {.kind = COLL_SENDRECV,
				.algo = SCHED_DIRECT,
				.n_ranks = comm->members.n_ranks,
				.ranks_per_node = 1,
				.n_channels = 1,
				.elem_bytes = 1,
				.bytes = bytes}};
	int r = 0;

	if (from < 0 || to < 0)
		return err_set(err, EINVAL, "rank %u is not in the communicator that rank %u calls",
			       from < 0 ? src : dst, from < 0 ? dst : src);
	if (c->delay) {
		price_init(&s.price, &s.s, &c->config->topology, &comm->members, c->delay,
			   op->number, err);
		if (delay_has_plan(c->delay)) {
			r = planned_init(&s.planned, &s.price, &s.s, err);
			s.is_planned = r == 0;
			s.price.lanes_at_port = s.planned.plan.n_lanes;
		}
	}
	if (r == 0 && (s.is_planned || (c->delay && delay_has_message(c->delay))))
		s.cost = price_cost(&s.price);
	else
		make_plain(&s);
	if (r == 0)
		r = add_chunks(&s.cost, (uint32_t)from, (uint32_t)to, bytes,
			       c->config ? c->config->chunk_bytes : bytes + 1, ret);
	shape_deinit(&s);
	return r;
}
