/* See ask.h. */
#include "nbox/ask/ask.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/matrix-calls.h"
#include "engine/solve-p2p.h"
#include "engine/solve-plan.h"
#include "engine/solver.h"
#include "members/members.h"

struct ask {
	const struct config *config;
	struct delay_chain *delay;
	struct solver *solver;
	struct overlap *overlap[2]; /* what-ifs on links; [1]: none; times count from the op's start
				     */
};

int ask_open(const struct config *c, const char *models, struct ask **ret, struct err *err)
{
	const struct overlap_sink sink = {0}; /* there are no ops */
	const char *dirs[] = {models, NULL};
	struct ask *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	a->config = c;
	r = open_model(c, dirs, &a->delay, err);
	if (r == 0 &&
	    (solver_new(&c->topology, a->delay, &a->solver) < 0 ||
	     overlap_new(&sink, &a->overlap[0]) < 0 || overlap_new(&sink, &a->overlap[1]) < 0 ||
	     link_changes_tell(c->link_changes, c->n_link_changes, c->fabric, a->overlap[0]) < 0))
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0) /* when an op starts */
		delay_set_moment(a->delay, &(const struct moment){0}, NULL);
	if (r < 0)
		ask_close(a);
	else
		*ret = a;
	return r;
}

struct ask *ask_close(struct ask *a)
{
	if (!a)
		return NULL;
	for (int i = 0; i < 2; i++)
		overlap_free(a->overlap[i]);
	solver_free(a->solver);
	delay_free(a->delay);
	free(a);
	return NULL;
}

const struct config *ask_config(const struct ask *a)
{
	return a->config;
}

const char *ask_warning(const struct ask *a)
{
	return delay_warning(a->delay);
}

const char *ask_decided_by(const struct ask *a)
{
	return delay_decided_by(a->delay);
}

char *ask_network(const struct ask *a, const struct asked *asked, char *buf, size_t size)
{
	return open_model_network(a->config, a->delay, asked, buf, size);
}

static uint32_t parts(enum coll_kind kind, uint32_t n_ranks)
{
	bool has = kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER || kind == COLL_ALLTOALL ||
		   kind == COLL_GATHER || kind == COLL_SCATTER;

	return has ? n_ranks : 1;
}

uint64_t ask_bytes(enum coll_kind kind, uint64_t size, uint32_t elem_bytes, uint32_t n_ranks)
{
	return size / elem_bytes / parts(kind, n_ranks) * elem_bytes;
}

uint64_t ask_size(enum coll_kind kind, uint64_t bytes, uint32_t n_ranks)
{
	return bytes * parts(kind, n_ranks);
}

enum { LOOKS_MAX = 1 << 18 }; /* at messages: some 100 ms */

static uint64_t first_message(const struct ask *a, uint64_t bytes)
{
	return bytes < a->config->chunk_bytes ? bytes : a->config->chunk_bytes;
}

/* nccl-tests' sendrecv: each port has one message at a time. */
struct shift {
	struct sched s;
	struct price p;
	struct planned pl;
};

static int shift_init(struct shift *sh, const struct ask *a, uint64_t bytes,
		      const struct membership *m, struct err *err)
{
	int r;

	*sh = (struct shift){.s = {.kind = COLL_SENDRECV,
				   .algo = SCHED_DIRECT,
				   .n_ranks = m->n_ranks,
				   .ranks_per_node = 1,
				   .n_channels = 1,
				   .elem_bytes = 1,
				   .bytes = bytes}};
	price_init(&sh->p, &sh->s, &a->config->topology, m, a->delay, 0, err);
	if (!delay_has_plan(a->delay))
		return 0;
	r = planned_init(&sh->pl, &sh->p, &sh->s, err);
	sh->p.lanes_at_port = sh->pl.plan.n_lanes;
	return r;
}

struct sender {
	double key;
	uint32_t rank;
};

static int by_key(const void *a, const void *b)
{
	const struct sender *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->rank < y->rank ? -1 : 1;
}

/* Sorts the ranks but the first and the last by their messages' class, or, where chance says what
 * each message costs, the dearest first one first. Return: 0; negative errno with the sentence. */
static int sort_senders(struct shift *sh, uint64_t chunk, bool is_chance, struct sender *ret)
{
	struct sim_cost cost = price_cost(&sh->p);
	struct nbox_delay delay;
	int r = 0;

	for (uint32_t i = 1; r == 0 && i + 1 < sh->s.n_ranks; i++, ret++) {
		ret->rank = i;
		if (!is_chance) {
			ret->key = price_class(&sh->p, i, i + 1, 0);
			continue;
		}
		r = cost.message(cost.ctx, i, i + 1, 0, 0, chunk, &delay);
		ret->key = -delay.latency_ns - delay.occupancy_ns;
	}
	return r;
}

/* When the last rank has sent and received. One message of each class stands for all; where there
 * are none, those that begin slowest. Rank 0's calls are its predecessor's message, too. */
static int shift_solve(const struct ask *a, uint64_t bytes, const struct membership *m,
		       struct timing *ret, struct err *err)
{
	const struct config *c = a->config;
	uint32_t n_ranks = m->n_ranks, n = 1, n_senders = n_ranks > 2 ? n_ranks - 2 : 0;
	uint64_t n_messages = bytes / c->chunk_bytes + 1, most = LOOKS_MAX / n_messages + 1;
	bool is_chance = delay_has_message(a->delay) && !delay_is_uniform(a->delay) &&
			 !delay_is_by_ranks(a->delay);
	CLEANUP(freep) struct sender *senders = calloc(n_ranks, sizeof(*senders));
	CLEANUP(freep) struct sched_p2p *calls = calloc(n_ranks + 1, sizeof(*calls));
	CLEANUP(freep) const struct sched_p2p **calls_of = calloc(n_ranks, sizeof(*calls_of));
	CLEANUP(freep) uint32_t *ranks = calloc(n_ranks, sizeof(*ranks));
	CLEANUP(freep) uint32_t *n_calls = calloc(n_ranks, sizeof(*n_calls));
	struct shift sh;
	int r;

	if (!senders || !calls || !calls_of || !ranks || !n_calls)
		return err_set(err, ENOMEM, "out of memory");
	r = shift_init(&sh, a, bytes, m, err);
	if (r == 0)
		r = sort_senders(&sh, first_message(a, bytes), is_chance, senders);
	planned_deinit(&sh.pl);
	if (r < 0)
		return r;
	qsort(senders, n_senders, sizeof(*senders), by_key);
	calls[0] = (struct sched_p2p){.peer = n_ranks - 1, .bytes = bytes};
	calls[1] = (struct sched_p2p){.peer = 1 % n_ranks, .is_send = true, .bytes = bytes};
	calls_of[0] = calls;
	n_calls[0] = 2;
	for (uint32_t i = 0; i < n_senders && n <= most; i++) {
		if (!is_chance && i > 0 && senders[i].key == senders[i - 1].key)
			continue;
		ranks[n] = senders[i].rank;
		calls[n + 1] = (struct sched_p2p){.peer = senders[i].rank + 1,
						  .is_send = true,
						  .bytes = bytes};
		calls_of[n] = &calls[n + 1];
		n_calls[n++] = 1;
	}
	r = solve_p2p(ranks, n, calls_of, n_calls, c->chunk_bytes, &c->topology, m, a->delay, NULL,
		      0, ret, err);
	if (r == 0)
		ret->is_near = is_chance && n <= n_senders;
	return r;
}

/* For all ranks' ops. */
static struct sched sched_of(const struct config *c, enum coll_kind kind, uint64_t bytes,
			     uint32_t elem_bytes, uint32_t root)
{
	return (struct sched){.kind = kind,
			      .algo = (enum sched_algo)c->algo[kind],
			      .n_ranks = c->world,
			      .root = root,
			      .ranks_per_node = c->topology.gpus_per_node,
			      .n_channels = c->channels,
			      .elem_bytes = elem_bytes,
			      .bytes = bytes,
			      .chunk_bytes = c->chunk_bytes};
}

/* Fills @ret where this connection's first message, of so many bytes, takes longer. */
static int look_at(struct price *p, const struct planned *pl, const struct sched_conn *conn,
		   uint64_t bytes, struct asked_message *ret, struct err *err)
{
	struct sim_cost cost = price_cost(p);
	uint64_t links[FABRIC_PATH_MAX];
	struct asked_message m = {.src = conn->src,
				  .dst = conn->dst,
				  .lane = conn->lane,
				  .bytes = bytes};
	const struct route *route;
	uint32_t number = routes_find(pl->routes, conn->src, conn->dst, conn->lane);
	int r = cost.message(cost.ctx, conn->src, conn->dst, conn->lane, 0, bytes, &m.delay);

	if (r < 0 || number == ROUTE_NONE ||
	    m.delay.latency_ns + m.delay.occupancy_ns <=
		    ret->delay.latency_ns + ret->delay.occupancy_ns)
		return r;
	route = routes_get(pl->routes, number);
	r = routes_links(pl->routes, conn->src, conn->dst, conn->lane, links);
	if (r < 0)
		return err_set(err, -r, "there is no path from rank %u to rank %u", m.src, m.dst);
	m.n_links = route->n_links;
	m.step_ns = pl->plan.step_ns[route->hop == NBOX_INTER];
	for (uint32_t i = 0; i < m.n_links; i++) {
		m.links[i] = route->links[i];
		fabric_link_name(delay_fabric(p->delay), links[i], m.names[i], sizeof(m.names[i]));
	}
	*ret = m;
	return 0;
}

static int shift_slowest(const struct ask *a, uint64_t bytes, const struct membership *m,
			 struct asked_message *ret, struct err *err)
{
	struct shift sh;
	int r = shift_init(&sh, a, bytes, m, err);

	for (uint32_t rank = 0; r == 0 && sh.pl.routes && rank < m->n_ranks; rank++) {
		const struct sched_conn conn = {.src = rank, .dst = (rank + 1) % m->n_ranks};

		r = look_at(&sh.p, &sh.pl, &conn, first_message(a, bytes), ret, err);
	}
	planned_deinit(&sh.pl);
	return r;
}

int ask_slowest(struct ask *a, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes,
		struct asked_message *ret, struct err *err)
{
	const struct config *c = a->config;
	const struct membership world = {.n_ranks = c->world, .stride = 1};
	struct sched s = sched_of(c, kind, bytes, elem_bytes, 0);
	struct asked_message slowest = {.n_links = 0};
	struct planned pl = {.routes = NULL};
	uint32_t stride = 1, n_looks = 0;
	struct price p;
	int r;

	if (kind == COLL_SENDRECV) {
		*ret = slowest;
		return shift_slowest(a, bytes, &world, ret, err);
	}
	r = delay_has_plan(a->delay) ? sched_init(&s, err) : 1;
	if (r == 0) {
		price_init(&p, &s, &c->topology, &world, a->delay, 0, err);
		r = planned_init(&pl, &p, &s, err);
	}
	/* where all send to all in a large world, some ranks' messages */
	if (r == 0 && pl.routes && pl.s.algo == SCHED_DIRECT)
		stride += (uint32_t)((uint64_t)routes_period(pl.routes) * 2 * pl.s.n_ranks /
				     LOOKS_MAX);
	for (uint32_t rank = 0; r == 0 && pl.routes && rank < pl.s.n_ranks;
	     rank = routes_next(pl.routes, rank + stride)) {
		struct sched_conn *conns = NULL;
		uint32_t n_in, n_out;

		r = sched_conns(&pl.s, rank, &conns, &n_in, &n_out);
		for (uint32_t i = 0; r == 0 && i < n_in + n_out; i++, n_looks++) {
			const struct sched_conn *k = &conns[(n_in + i) % (n_in + n_out)];

			r = look_at(&p, &pl, k,
				    sched_message_bytes(&pl.s, k->src, k->dst, k->lane, 0),
				    &slowest, err);
		}
		free(conns);
	}
	planned_deinit(&pl);
	if (stride > 1)
		slowest.n_sample = n_looks;
	if (r >= 0)
		*ret = slowest;
	return r < 0 ? r : 0;
}

const char *ask_algo_name(uint32_t algo)
{
	static const char *const names[] = {"ring", "tree",     "direct", "chain",
					    "nvls", "nvlstree", "pat",    "collnet"};

	return names[algo];
}

const char *ask_proto_name(uint32_t proto)
{
	static const char *const names[] = {"LL", "LL128", "Simple"};

	return names[proto];
}

/* What the op puts on links; *ret is the caller's reference. */
static int usage_of(struct ask *a, const struct sched *s, const struct membership *m,
		    struct usage **ret, struct err *err)
{
	const struct config *c = a->config;
	CLEANUP(freep) struct sched_p2p *calls = NULL;
	CLEANUP(freep) const struct sched_p2p **calls_of = NULL;
	CLEANUP(freep) uint32_t *ranks = NULL;
	CLEANUP(freep) uint32_t *n_calls = NULL;
	uint32_t n = m->n_ranks;

	if (s->kind != COLL_SENDRECV)
		return usage_of_op(s, &c->topology, m, a->delay, 0, NULL, ret, err);
	calls = calloc(2 * (size_t)n, sizeof(*calls));
	calls_of = calloc(n, sizeof(*calls_of));
	ranks = calloc(n, sizeof(*ranks));
	n_calls = calloc(n, sizeof(*n_calls));
	if (!calls || !calls_of || !ranks || !n_calls)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct sched_p2p *k = &calls[2 * (size_t)i];

		k[0] = (struct sched_p2p){.peer = (i + n - 1) % n, .bytes = s->bytes};
		k[1] = (struct sched_p2p){.peer = (i + 1) % n, .is_send = true, .bytes = s->bytes};
		calls_of[i] = k;
		ranks[i] = i;
		n_calls[i] = 2;
	}
	return solve_p2p_usage(ranks, n, calls_of, n_calls, c->chunk_bytes, &c->topology, m,
			       a->delay, 0, NULL, NULL, false, ret, err);
}

int ask_usage(struct ask *a, const struct membership *m, enum coll_kind kind, uint64_t bytes,
	      uint32_t elem_bytes, uint32_t root, struct usage **ret, struct err *err)
{
	struct sched s = sched_of(a->config, kind, bytes, elem_bytes, root);
	int r;

	s.n_ranks = m->n_ranks;
	s.ranks_per_node = members_per_node(m, &a->config->topology);
	r = kind == COLL_SENDRECV ? 0 : sched_init(&s, err);
	return r < 0 ? r : usage_of(a, &s, m, ret, err);
}

/* What links make of the op's times that these know nothing of. */
static int change_links(struct ask *a, const struct sched *s, const struct membership *m,
			struct answer *answer, struct err *err)
{
	const struct config *c = a->config;
	bool has_ecmp = c->fabric && c->fabric->network.ecmp && delay_has_plan(a->delay);
	double later_ns[2] = {0, 0};
	struct usage *usage = NULL;
	int r;

	if ((!c->n_link_changes && !has_ecmp) || !(answer->model_ns > 0))
		return 0;
	r = usage_of(a, s, m, &usage, err);
	if (r == 0 && (overlap_alone(a->overlap[0], usage, 0, answer->ns, &later_ns[0]) < 0 ||
		       overlap_alone(a->overlap[1], usage, 0, answer->model_ns, &later_ns[1]) < 0))
		r = err_set(err, ENOMEM, "out of memory");
	answer->ns += later_ns[0];
	answer->model_ns += later_ns[1];
	usage_unref(usage);
	return r;
}

static int op_of(struct ask *a, uint32_t comm, const struct membership *m, struct sched *s,
		 struct answer *ret, struct err *err)
{
	const struct config *c = a->config;
	struct timing t = {0};
	int r;

	if (s->kind == COLL_SENDRECV) {
		r = shift_solve(a, s->bytes, m, &t, err);
	} else {
		r = sched_init(s, err);
		if (r == 0)
			r = solver_solve(a->solver, comm, s, m, NULL, 0, &t, err);
	}
	if (r < 0)
		return r;
	*ret = (struct answer){.ns = t.end_ns,
			       .model_ns = t.model_ns,
			       .bound_ns = t.bound_ns,
			       .how = t.how,
			       .is_near = t.is_near,
			       .plan = t.plan};
	if (t.bound_where[0])
		memcpy(ret->bound_at, t.bound_where, sizeof(ret->bound_at));
	else if (c->fabric)
		ret->bound_ns = fabric_bound(c->fabric, s->kind, s->bytes, s->root, m,
					     ret->bound_at, sizeof(ret->bound_at));
	timing_deinit(&t);
	return change_links(a, s, m, ret, err);
}

int ask_op(struct ask *a, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes, uint32_t root,
	   struct answer *ret, struct err *err)
{
	const struct membership world = {.n_ranks = a->config->world, .stride = 1};
	struct sched s = sched_of(a->config, kind, bytes, elem_bytes, root);

	return op_of(a, 0, &world, &s, ret, err);
}

int ask_op_of(struct ask *a, uint32_t comm, const struct membership *m, enum coll_kind kind,
	      uint64_t bytes, uint32_t elem_bytes, uint32_t root, struct answer *ret,
	      struct err *err)
{
	struct sched s = sched_of(a->config, kind, bytes, elem_bytes, root);

	s.n_ranks = m->n_ranks;
	s.ranks_per_node = members_per_node(m, &a->config->topology);
	return op_of(a, comm, m, &s, ret, err);
}

int ask_plan(struct ask *a, const struct membership *m, enum coll_kind kind, uint64_t bytes,
	     uint32_t elem_bytes, struct nbox_plan *ret, struct err *err)
{
	struct sched s = sched_of(a->config, kind, bytes, elem_bytes, 0);
	struct price p;

	s.n_ranks = m->n_ranks;
	s.ranks_per_node = members_per_node(m, &a->config->topology);
	price_init(&p, &s, &a->config->topology, m, a->delay, 0, err);
	return planned_ask(&p, ret, err);
}

struct comers {
	const double *at;
	double *ends;
};

static double comer_start(void *ctx, uint32_t rank)
{
	const struct comers *c = ctx;

	return c->at[rank];
}

static void comer_done(void *ctx, uint32_t rank, double end_ns, double port_ns)
{
	const struct comers *c = ctx;

	(void)port_ns;
	c->ends[rank] = end_ns;
}

int ask_matrix_ends(struct ask *a, const uint64_t *bytes, double *times, struct err *err)
{
	const struct config *c = a->config;
	const struct membership world = {.n_ranks = c->world, .stride = 1};
	CLEANUP(matrix_calls_deinit) struct matrix_calls calls = {0};
	CLEANUP(freep) double *at = malloc(c->world * sizeof(*at));
	struct comers comers = {at, times};
	const struct p2p_ranks who = {&comers, comer_start, NULL, comer_done};
	struct timing t = {0};
	int r;

	if (!at || matrix_calls_init(&calls, bytes, c->world) < 0)
		return err_set(err, ENOMEM, "out of memory");
	memcpy(at, times, c->world * sizeof(*at));
	r = solve_p2p(calls.ranks, calls.n, calls.by_rank, calls.n_by_rank, c->chunk_bytes,
		      &c->topology, &world, a->delay, NULL, 0, &t, err);
	if (r < 0)
		return r;
	r = solve_p2p_ends(calls.ranks, calls.n, calls.by_rank, calls.n_by_rank, c->chunk_bytes,
			   &c->topology, &world, a->delay, 0, &t, false, &who, err);
	timing_deinit(&t);
	return r;
}

bool ask_knows_messages(const struct ask *a)
{
	return delay_has_message(a->delay) || delay_has_plan(a->delay);
}

int ask_matrix_of(struct ask *a, const struct membership *m, const uint64_t *bytes,
		  struct answer *ret, struct err *err)
{
	const struct config *c = a->config;
	CLEANUP(matrix_calls_deinit) struct matrix_calls calls = {0};
	struct timing t = {0};
	int r;

	if (c->n_link_changes)
		return err_set(err, EINVAL,
			       "what-ifs on links count for ops that nbox knows by name, not for a "
			       "matrix");
	if (matrix_calls_init(&calls, bytes, m->n_ranks) < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = solve_p2p(calls.ranks, calls.n, calls.by_rank, calls.n_by_rank, c->chunk_bytes,
		      &c->topology, m, a->delay, NULL, 0, &t, err);
	if (r < 0)
		return r;
	*ret = (struct answer){.ns = t.end_ns,
			       .model_ns = t.model_ns,
			       .bound_ns = t.bound_ns,
			       .how = t.how,
			       .is_near = t.is_near};
	timing_deinit(&t);
	return 0;
}

int ask_matrix(struct ask *a, const uint64_t *bytes, struct answer *ret, struct err *err)
{
	const struct membership world = {.n_ranks = a->config->world, .stride = 1};

	return ask_matrix_of(a, &world, bytes, ret, err);
}
