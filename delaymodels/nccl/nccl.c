/* nccl: which messages NCCL makes of an op at the virtual size.
 *
 * A scheduler: it answers with algorithm, protocol, channels, threads, chunks and rails, and with
 * what a step costs besides its links; what the links cost, a link model says. The way there is
 * NCCL's: graphs of the fabric (graph.c), a cost for each algorithm and protocol (cost.c), the
 * cheapest, cut into channels and chunks (choice.c). Parameters come first, then the variables that
 * the job has in its environment, then NCCL's defaults. README.md says how far the decisions agree
 * with NCCL's. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "decisions.h"
#include "p2p.h"
#include "setting.h"
#include "tuner.h"
#include "whole.h"

/* Within NCCL's step times, which are measured on H100 and InfiniBand; the fabric has its own. */
#define NET_NS 2000
#define NVLINK_NS 300
#define P2P_BASE_NS 500
/* From four domains on an inner one hears two children at a time and gets 0.8 of its NICs: trees of
 * Alps with 64 to 512 nodes 0.79, of Polaris with 256 and 540 0.85. */
#define TREE_FAN_IN 1.22
/* What one channel of a ring gets through a NIC on sm90 and later: rings of 16 channels stand at
 * 320 to 345 GB/s of bus bandwidth on four clusters of 8 x 50 GB/s a node, with 24 channels at 392;
 * a send to one peer over one channel gets 19.7 GB/s, over two 36 to 43. */
#define RING_LANE_BYTES_PER_NS 21.5

#define SOURCE 640

struct nccl {
	const struct nbox_host *host;
	struct setting setting;
	struct tuner tuner;
	struct decisions decisions; /* n 0: there is no decision file */
	/* Parameters that ask what NCCL would do otherwise: they go before what it took. */
	int has_algo, has_proto, has_channels, has_rule;
	/* By what ops of the file are decided, and others, where there is one; the file, and what
	 * narrows it. */
	char told_source[SOURCE], other_source[SOURCE], told_by[SOURCE];
};

static void nccl_destroy(void *model)
{
	struct nccl *m = model;

	decisions_deinit(&m->decisions);
	tuner_deinit(&m->tuner);
	free(m);
}

/* What the user should know before the run. */
static void warn(const struct nccl *m)
{
	const char *job = setting_job_version(m->host), *unknown = m->setting.unknown;
	const struct decisions *d = &m->decisions;
	char told[240] = "", shapes[96], version[80] = "";

	if (d->n && job[0] && strcmp(job, d->nccl) != 0)
		snprintf(version, sizeof(version),
			 "; the job's is NCCL %.24s, which may decide otherwise", job);
	if (d->n)
		snprintf(told, sizeof(told),
			 "the decision file is of NCCL %s and %s; nbox's own rules decide for "
			 "others%s",
			 d->nccl, decisions_shapes(d, shapes, sizeof(shapes)), version);
	if (told[0] || unknown[0])
		m->host->warn(m->host, "%s%s%s%s", told, told[0] && unknown[0] ? ". " : "", unknown,
			      unknown[0] ? ": not modelled, and NCCL may choose otherwise by it"
					 : "");
}

/* Return: 0, without @file too; -1 with the sentence. */
static int read_decisions(struct nccl *m, const char *file)
{
	char sentence[DECISIONS_SENTENCE];

	if (!file)
		return 0;
	if (decisions_read(file, &m->decisions, sentence) == 0)
		return 0;
	m->host->error(m->host, "decisions: %s", sentence);
	return -1;
}

/* "h100.txt", "h100.txt (with NCCL_ALGO=Ring)" */
static void name_told_by(struct nccl *m, const char *name)
{
	const char *limits = m->setting.source + m->setting.limits_at;

	if (limits[0])
		snprintf(m->told_by, SOURCE, "%.200s (with%s)", name, limits + 1);
	else
		snprintf(m->told_by, SOURCE, "%.200s", name);
}

static int read_all(struct nccl *m, const struct nbox_kv *kv, size_t n_kv)
{
	const char *file = nbox_value(kv, n_kv, "decisions"), *name;
	const struct setting *s = &m->setting;

	if (read_decisions(m, file) < 0 ||
	    setting_read(m->host, kv, n_kv, file ? m->decisions.nccl : NULL, &m->setting) < 0 ||
	    tuner_read(m->host, setting_tuner(m->host, kv, n_kv), &m->tuner) < 0)
		return -1;
	if (file) { /* by its name alone: a run's copy is in another folder */
		name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
		snprintf(m->told_source, SOURCE, "NCCL %s itself, by %.200s of %s%s",
			 m->decisions.nccl, name, m->decisions.date, s->source + s->limits_at);
		snprintf(m->other_source, SOURCE, "%s; this is not in %.200s", s->source, name);
		name_told_by(m, name);
	}
	warn(m);
	return 0;
}

static int nccl_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct nccl *m = calloc(1, sizeof(*m));

	(void)next;
	if (!m) {
		host->error(host, "out of memory");
		return -1;
	}
	m->host = host;
	m->has_algo = nbox_value(kv, n_kv, "algo") != NULL;
	m->has_proto = nbox_value(kv, n_kv, "proto") != NULL;
	m->has_channels = nbox_value(kv, n_kv, "channels") != NULL;
	m->has_rule = nbox_value(kv, n_kv, "version") || nbox_value(kv, n_kv, "tuner");
	if (read_all(m, kv, n_kv) < 0) {
		nccl_destroy(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

/* --- the answer's parts ------------------------------------------------------------ */

static uint32_t algo_of(uint32_t algo, uint32_t kind)
{
	static const uint32_t algos[N_ALGOS] = {
		[ALGO_TREE] = NBOX_TREE,
		[ALGO_RING] = NBOX_RING,
		[ALGO_COLLNET_DIRECT] = NBOX_COLLNET,
		[ALGO_COLLNET_CHAIN] = NBOX_COLLNET,
		[ALGO_NVLS] = NBOX_NVLS,
		[ALGO_NVLS_TREE] = NBOX_NVLS_TREE,
		[ALGO_PAT] = NBOX_PAT,
	};
	int is_chain = kind == NBOX_BROADCAST || kind == NBOX_REDUCE;

	return algo == ALGO_RING && is_chain ? NBOX_CHAIN : algos[algo];
}

static double cost_ns(float us)
{
	return us < 0 ? -1 : (double)us * 1e3;
}

/* @own: without the decision file; NULL: there is none. */
static void set_candidates(const struct comm *c, const struct comm *own, uint32_t kind,
			   uint64_t bytes, struct nbox_plan *ret)
{
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t p = 0; p < N_PROTOS; p++) {
			uint32_t i = ret->n_candidates;
			const char *why_not, *own_why_not;
			float us = choice_us(c, kind, a, p, bytes, &why_not);

			/* one line for CollNet */
			if (us < 0 && (!cost_exists(kind, a, p) ||
				       (a == ALGO_COLLNET_CHAIN && kind == NBOX_ALLREDUCE)))
				continue;
			ret->candidates[i] = (struct nbox_candidate){
				.algo = algo_of(a, kind),
				.proto = p,
				.cost_ns = cost_ns(us),
				.why_not = us < 0 ? why_not : NULL,
			};
			if (own)
				ret->own_cost_ns[i] =
					cost_ns(choice_us(own, kind, a, p, bytes, &own_why_not));
			ret->n_candidates++;
		}
}

/* What nbox's own rules say, beside what the decision file does. */
static void set_own(const struct nccl *m, const struct comm *own, uint32_t kind, uint64_t bytes,
		    struct nbox_plan *ret)
{
	struct choice ch;

	ret->own_source = m->setting.source;
	ret->own_algo = ret->own_proto = UINT32_MAX;
	if (choice_make(own, &m->tuner, kind, bytes, &ch) < 0)
		return;
	ret->own_algo = algo_of(ch.algo, kind);
	ret->own_proto = ch.proto;
	ret->own_lanes = ch.n_channels;
}

static void set_steps(const struct comm *c, uint32_t algo, uint32_t proto, struct nbox_plan *ret)
{
	static const double factors[N_PROTOS] = {2, 16.0 / 15, 1};
	const struct tables *t = tables_default();
	const struct graph *g = algo == ALGO_TREE ? &c->graphs.tree : &c->graphs.ring;
	enum hw in = g->intra_type == PATH_NVLINK ? HW_NVLINK : HW_PCI;
	double intra = t->hw_us[in][algo][proto] * 1e3, inter;

	/* NCCL's estimate of a ring has less than a tree's step for a link between nodes, and
	 * counts it once a node and lap, but each step inside waits for the proxy's post: that
	 * is the mean of what the schedule shows by itself. */
	inter = t->hw_us[HW_NET][ALGO_TREE][proto] * 1e3 - NET_NS;
	intra -= NVLINK_NS;
	/* NCCL counts 1 us of the proxy for each step of a ring (3 for Simple), and 2 (6) on AMD:
	 * the first is in what links between nodes take, the rest is not. */
	if (algo == ALGO_RING && c->n_nodes > 1 && c->cpu == NBOX_AMD)
		intra += proto == NBOX_SIMPLE ? 3e3 : 1e3;
	ret->step_ns[NBOX_INTRA] = intra > 0 ? intra : 0;
	ret->step_ns[NBOX_INTER] = inter > 0 ? inter : 0;
	ret->base_ns = t->base_us[algo][proto] * 1e3;
	ret->wire_factor = factors[proto];
	ret->proto = proto;
}

/* What a thread block moves: in a tree half of it goes up while the other half comes down. NCCL's
 * figures for two domains stand for more as well: its lower ones for those contain how long the
 * pipeline takes to fill, which the schedule shows. */
static void simple_lanes(const struct comm *c, const struct choice *ch, struct nbox_plan *ret)
{
	uint32_t card = tables_card(c->sm_min);
	double tree = tables_default()->tree_bw[card][c->n_nodes > 1] / 2;

	if (ch->algo == ALGO_TREE) {
		ret->lane_bytes_per_ns[NBOX_INTRA] = ret->lane_bytes_per_ns[NBOX_INTER] = tree;
		if (c->n_nodes >= 4)
			ret->wire_factor = TREE_FAN_IN;
	} else if (c->sm_min >= 90)
		ret->lane_bytes_per_ns[NBOX_INTER] = RING_LANE_BYTES_PER_NS;
}

/* NCCL's limit of LL is that of a GPU or of the proxies, which a ring's lanes at work share; a lane
 * alone has what one of the channels has on one node. */
static double ll_ring_lane_bw(const struct comm *c, const struct choice *ch, double all_bw)
{
	static const double channels[N_CARDS] = {12, 24, 24, 32}; /* on one node */
	uint32_t card = tables_card(c->sm_min);
	double alone = 2 * tables_default()->ll_bw[card][0] / channels[card];
	double share = all_bw / ch->n_channels;

	return share < alone ? share : alone;
}

/* A lane carries its share of what NCCL's tables give the graph. In a tree half of that goes up
 * while the other half comes down. */
static void set_lanes(const struct comm *c, const struct nbox_op *op, const struct choice *ch,
		      struct nbox_plan *ret)
{
	double bw = (double)cost_bus_bw(c, op->kind, ch->algo, ch->proto) * ret->wire_factor;
	uint32_t elem = op->elem_bytes ? op->elem_bytes : 1;

	if (ch->algo == ALGO_RING && ch->proto == NBOX_LL)
		bw = ll_ring_lane_bw(c, ch, bw);
	else
		bw /= ch->algo == ALGO_TREE ? 2 * ch->n_of_comm : ch->n_of_comm;
	ret->lane_bytes = (ch->lane_bytes + elem - 1) / elem * elem;
	/* channels of the graph are followed by as many with the second tree, and so on */
	for (uint32_t i = 0; ch->algo == ALGO_TREE && i < ch->n_channels; i++)
		ret->n_first += i / c->graphs.tree.n_channels % 2 == 0;
	if (ch->proto == NBOX_SIMPLE) {
		/* NCCL knows steps of 2 to 6 GB/s there: the links say it better */
		simple_lanes(c, ch, ret);
		return;
	}
	/* Between domains proxies send chunks. Inside one LL and LL128 pass each line on as it
	 * arrives; a tree or a chain over several domains is no faster than its way between them.
	 */
	ret->lane_bytes_per_ns[NBOX_INTER] = bw;
	if ((ch->algo == ALGO_TREE || ret->algo == NBOX_CHAIN) && c->n_nodes > 1)
		ret->intra_line_bytes = ch->proto == NBOX_LL ? 16 : 128;
	else
		ret->lane_bytes_per_ns[NBOX_INTRA] = bw;
}

/* By what an op of that kind is decided. */
static const char *source_of(const struct nccl *m, const struct comm *c, uint32_t kind)
{
	if (!m->decisions.n)
		return m->setting.source;
	return c->told && (kind >= N_COSTED || decided_op(c, kind)) ? m->told_source
								    : m->other_source;
}

static void plan_collective(const struct nccl *m, const struct comm *c, const struct nbox_op *op,
			    const struct nbox_fabric *f, const struct choice *ch, uint64_t bytes,
			    struct nbox_plan *ret)
{
	const char *why_not;

	ret->algo = algo_of(ch->algo, op->kind);
	ret->n_threads = ch->n_threads;
	ret->n_slices = ch->n_slices;
	ret->chunk_bytes = ch->chunk_bytes;
	ret->estimate_ns = cost_ns(choice_us(c, op->kind, ch->algo, ch->proto, bytes, &why_not));
	ret->source = source_of(m, c, op->kind);
	ret->proto = ch->proto;
	ret->n_lanes = ch->n_channels;
	if (ret->algo >= NBOX_NVLS) {
		ret->whole_ns = whole_ns(c, f, op->kind, ch, bytes);
	} else {
		set_steps(c, ch->algo, ch->proto, ret);
		set_lanes(c, op, ch, ret);
	}
}

/* Of the decision file's choice nbox must know how to play it, and how fast it is. Return: 0; -1
 * with the sentence. */
static int check_told(const struct nccl *m, const struct nbox_fabric *f, const struct comm *c,
		      uint32_t kind, const struct choice *ch)
{
	int is_nvls = ch->algo == ALGO_NVLS || ch->algo == ALGO_NVLS_TREE;
	const char *why = NULL;

	if (ch->algo == ALGO_COLLNET_DIRECT || ch->algo == ALGO_COLLNET_CHAIN ||
	    (ch->algo == ALGO_NVLS && c->n_nodes > 1))
		why = "CollNet, of whose times nbox knows nothing: take it out by algo=^collnetdirect+collnetchain+nvls";
	else if (!cost_exists(kind, ch->algo, ch->proto))
		why = "an algorithm and protocol that nbox does not know for this kind of op";
	else if (is_nvls && (!f->has_nvls || c->sm_min < 90 || !c->graphs.nvls.n_channels))
		why = "NVLS, and this fabric has no switch that reduces: give the machine of the file, as in --preset dgx-h100, or take it out by algo=^nvls+nvlstree";
	if (!why)
		return 0;
	m->host->error(m->host, "by the decision file NCCL takes %s", why);
	return -1;
}

static void plan_p2p(const struct nccl *m, const struct comm *c, const struct nbox_op *op,
		     struct nbox_plan *ret)
{
	struct p2p p;

	p2p_make(c, op->bytes, &p);
	ret->algo = NBOX_DIRECT;
	ret->n_lanes = p.n_channels;
	ret->n_threads = 512;
	ret->chunk_bytes = p.chunk_bytes;
	ret->source = source_of(m, c, op->kind);
	set_steps(c, ALGO_RING, p.proto, ret);
	/* Its table has no base of send and receive: 8 bytes to another node take 14.5 us on B200,
	 * 14 of them the step. The proxy posts a send and a receive for each peer. */
	ret->base_ns = P2P_BASE_NS;
	if (op->kind == NBOX_ALLTOALL && c->n_nodes > 1)
		ret->base_ns += 2 * (double)(c->n_ranks - c->least_local) *
				(c->cpu == NBOX_AMD ? 2e3 : 1e3);
	if (c->sm_min >= 90)
		ret->lane_bytes_per_ns[NBOX_INTER] = RING_LANE_BYTES_PER_NS;
}

/* --- what NCCL took ---------------------------------------------------------------- */

/* Our number of the algorithm; N_ALGOS: CollNet, of whose times nothing is known. */
static uint32_t algo_taken(uint32_t algo)
{
	uint32_t a = 0;

	while (a < N_ALGOS && (algo == NBOX_COLLNET || algo_of(a, NBOX_ALLREDUCE) != algo))
		a++;
	return a;
}

/* The choice that the job's NCCL made for @op. Return: 0; -1: the rules decide, as *ret_why_not
 * (static; NULL: it told nothing) says. */
static int take(const struct nccl *m, const struct comm *c, const struct nbox_op *op,
		uint64_t bytes, struct choice *ch, const char **ret_why_not)
{
	const struct setting *s = c->setting;
	uint32_t algo;

	*ret_why_not = NULL;
	if (op->struct_size < offsetof(struct nbox_op, took_lanes) + sizeof(op->took_lanes) ||
	    !op->took_lanes)
		return -1;
	algo = algo_taken(op->took_algo);
	if (m->has_rule)
		*ret_why_not = "its version= or tuner= asks for what other rules say";
	else if (algo == N_ALGOS || op->took_proto >= N_PROTOS)
		*ret_why_not = "it knows nothing of its times";
	else if ((m->has_algo || op->algo != NBOX_ALGO_ANY) && !s->algo[op->kind][algo])
		*ret_why_not = "its algo=, or --algo, asks for another algorithm";
	else if (m->has_proto && !s->proto[op->kind][op->took_proto])
		*ret_why_not = "its proto= asks for another protocol";
	else if (choice_take(c, op->kind, algo, op->took_proto,
			     m->has_channels ? 0 : op->took_lanes, bytes, ch) < 0)
		*ret_why_not = "it knows nothing of its times";
	return *ret_why_not ? -1 : 0;
}

/* What the decision file says, beside what NCCL took. */
static void set_told(const struct nccl *m, const struct comm *c, uint32_t kind, uint64_t bytes,
		     struct nbox_plan *ret)
{
	struct choice ch;

	if (ret->struct_size < offsetof(struct nbox_plan, told_by) + sizeof(ret->told_by) ||
	    !c->told)
		return;
	if (c->told->n_channels != DECISIONS_NOT_KNOWN)
		ret->told_of_comm = c->n_channels;
	if (!decided_op(c, kind) || choice_make(c, &m->tuner, kind, bytes, &ch) < 0)
		return;
	ret->told_algo = algo_of(ch.algo, NBOX_ALLREDUCE);
	ret->told_proto = ch.proto;
	ret->told_lanes = ch.n_channels;
	ret->told_by = m->told_by;
}

static void tell_taken(const char *why_not, struct nbox_plan *ret)
{
	if (ret->struct_size <
	    offsetof(struct nbox_plan, why_not_taken) + sizeof(ret->why_not_taken))
		return;
	ret->is_taken = !why_not;
	ret->why_not_taken = why_not;
}

/* --- the question ------------------------------------------------------------------ */

/* A user's --algo leaves NCCL the other half of the choice. Return: 0; -1: not for this kind. */
static int narrow(const struct nccl *m, const struct nbox_op *op, struct setting *ret)
{
	uint32_t algo = op->algo == NBOX_CHAIN ? NBOX_RING : op->algo;

	*ret = m->setting;
	if (op->algo == NBOX_ALGO_ANY || op->kind >= N_COSTED)
		return 0;
	for (uint32_t a = 0; a < N_ALGOS; a++)
		if (algo_of(a, NBOX_ALLREDUCE) != algo)
			ret->algo[op->kind][a] = ALLOWED_NO;
	return algo == NBOX_DIRECT ? -1 : 0;
}

static int nccl_plan(void *model, const struct nbox_op *op, const struct nbox_fabric *fabric,
		     struct nbox_plan *ret)
{
	const struct nccl *m = model;
	uint64_t bytes = op->bytes;
	struct setting setting;
	const char *why_not;
	struct comm c, own;
	struct choice ch;

	if (op->n_ranks < 2 || fabric->n_domains < 1 || fabric->most_ranks_per_domain < 1) {
		ret->algo = op->kind < N_COSTED ? algo_of(ALGO_RING, op->kind) : NBOX_DIRECT;
		ret->proto = NBOX_SIMPLE;
		ret->n_lanes = 1;
		ret->chunk_bytes = m->setting.buffer_bytes[NBOX_SIMPLE];
		ret->source = m->setting.source;
		return 0;
	}
	if (narrow(m, op, &setting) < 0)
		return 1;
	comm_make(&setting, fabric, op->n_ranks, &own);
	c = own;
	decided_apply(&m->decisions, &c);
	ret->n_rails = fabric->n_nics && c.n_nodes > 1 ? fabric->n_nics : 1;
	if (op->kind >= N_COSTED) {
		plan_p2p(m, &c, op, ret);
		return 0;
	}
	if (op->kind == NBOX_ALLGATHER || op->kind == NBOX_REDUCESCATTER)
		bytes *= op->n_ranks;
	set_told(m, &c, op->kind, bytes, ret);
	if (take(m, &c, op, bytes, &ch, &why_not) == 0) {
		plan_collective(m, &c, op, fabric, &ch, bytes, ret);
		set_candidates(&c, NULL, op->kind, bytes, ret);
		ret->source = m->has_channels ? "NCCL itself, but for the channels" : "NCCL itself";
		tell_taken(NULL, ret);
		return 0;
	}
	if (why_not)
		tell_taken(why_not, ret);
	if (choice_make(&c, &m->tuner, op->kind, bytes, &ch) < 0) {
		m->host->error(
			m->host,
			"NCCL has no algorithm and protocol left for this op: loosen NCCL_ALGO "
			"and NCCL_PROTO, or the model's algo= and proto=");
		return -1;
	}
	if (decided_op(&c, op->kind)) {
		if (check_told(m, fabric, &c, op->kind, &ch) < 0)
			return -1;
		set_own(m, &own, op->kind, bytes, ret);
	}
	plan_collective(m, &c, op, fabric, &ch, bytes, ret);
	set_candidates(&c, ret->own_source ? &own : NULL, op->kind, bytes, ret);
	return 0;
}

static const struct nbox_param params[] = {
	{"algo", "text", "NCCL_ALGO, else all", "algorithms, as in NCCL_ALGO; '+' for ','"},
	{"proto", "text", "NCCL_PROTO, else all", "protocols, as in NCCL_PROTO; '+' for ','"},
	{"channels", "count", "NCCL_MIN/MAX_NCHANNELS, else the fabric's",
	 "channels of a communicator"},
	{"version", "text", "the job's, else 2.28.9", "of NCCL, by whose cost tables it decides"},
	{"tuner", "text", "NCCL_TUNER_CONFIG_FILE, else none",
	 "table of NCCL's example tuner plug-in (CSV)"},
	{"decisions", "text", "none",
	 "file of nbox oracle: what stock NCCL decides, in communicators of its shapes"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "nccl",
	.summary = "algorithm, protocol, channels and chunks as NCCL picks them",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = nccl_create,
	.destroy = nccl_destroy,
	.plan = nccl_plan,
};
