/* See result.h. */
#include "nbox/oracle/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "nccl/words.h"

#define PATTERN_RING 4
#define PATTERN_NVLS 5
#define PATTERN_COLLNET 6

static bool is_here(int32_t rank, uint32_t n_gpus)
{
	return rank >= 0 && rank < (int32_t)n_gpus;
}

uint32_t oracle_ring_of(const struct nccl_log *l, uint32_t c, uint32_t n_gpus, uint16_t *ret)
{
	int32_t at = 0; /* where the ring is in this node alone */
	uint32_t n;

	for (uint32_t r = 0; r < n_gpus; r++) {
		if (l->ring_prev[c][r] == NCCL_LOG_NONE)
			return 0;
		if (!is_here(l->ring_prev[c][r], n_gpus))
			at = (int32_t)r;
	}
	for (n = 0; n < n_gpus && is_here(at, n_gpus); at = l->ring_next[c][at])
		ret[n++] = (uint16_t)at;
	return n == n_gpus ? n : 0;
}

uint32_t oracle_tree_of(const struct nccl_log *l, uint32_t c, uint32_t n_gpus, uint16_t *ret)
{
	int32_t at = -1, next;
	uint32_t n;

	for (uint32_t r = 0; r < n_gpus; r++) {
		if (l->tree_up[c][r] == NCCL_LOG_NONE)
			return 0;
		if (!is_here(l->tree_up[c][r], n_gpus))
			at = (int32_t)r;
	}
	for (n = 0; n < n_gpus && at >= 0; at = next) {
		ret[n++] = (uint16_t)at;
		next = -1;
		for (int d = 0; d < 3; d++)
			if (is_here(l->tree_down[c][at][d], n_gpus))
				next = l->tree_down[c][at][d];
	}
	return n == n_gpus ? n : 0;
}

/* The file's number of a graph; -1: it has no place there. A second tree is CollNet's chain. */
static int graph_number(const struct nccl_log *l, uint32_t i)
{
	int pattern = l->graphs[i].pattern;

	if (pattern == PATTERN_RING)
		return ALGO_RING;
	if (pattern == PATTERN_NVLS)
		return ALGO_NVLS;
	if (pattern == PATTERN_COLLNET)
		return ALGO_COLLNET_DIRECT;
	if (pattern < 1 || pattern > PATTERN_COLLNET)
		return -1;
	for (uint32_t k = 0; k < i; k++)
		if (l->graphs[k].pattern >= 1 && l->graphs[k].pattern < PATTERN_RING)
			return ALGO_COLLNET_CHAIN;
	return ALGO_TREE;
}

static void set_graphs(const struct nccl_log *l, struct decisions_comm *c)
{
	for (uint32_t i = 0; i < l->n_graphs; i++) {
		const struct nccl_log_graph *g = &l->graphs[i];
		int number = graph_number(l, i);
		int intra = words_find(DECISIONS_PATHS, g->type_intra, strlen(g->type_intra));
		int inter = words_find(DECISIONS_PATHS, g->type_inter, strlen(g->type_inter));

		if (number < 0 || intra < 0 || inter < 0 || g->n_channels < 1)
			continue;
		c->graphs[number] = (struct decisions_graph){
			.n_channels = (uint32_t)g->n_channels,
			.bw_intra = g->bw_intra,
			.bw_inter = g->bw_inter,
			.type_intra = (uint32_t)intra,
			.type_inter = (uint32_t)inter,
			.pattern = (uint32_t)g->pattern - 1,
			.cross_nic = (uint32_t)g->cross_nic,
			.same_channels = (uint32_t)g->same_channels,
		};
	}
}

static int add_order(struct decisions_comm *c, uint32_t graph, uint32_t channel,
		     const uint16_t *ranks, uint32_t n)
{
	struct decisions_order *o = &c->orders[c->n_orders];

	o->ranks = malloc(n * sizeof(*ranks));
	if (!o->ranks)
		return -ENOMEM;
	memcpy(o->ranks, ranks, n * sizeof(*ranks));
	o->graph = graph;
	o->channel = channel;
	o->n = n;
	c->n_orders++;
	return 0;
}

static int set_orders(const struct oracle_world *w, struct decisions_comm *c)
{
	uint16_t ranks[NCCL_LOG_GPUS_MAX];
	int r = 0;

	c->orders = calloc((size_t)2 * NCCL_LOG_CHANNELS_MAX, sizeof(*c->orders));
	if (!c->orders)
		return -ENOMEM;
	for (int tree = 0; tree < 2; tree++)
		for (uint32_t k = 0; r == 0 && k < NCCL_LOG_CHANNELS_MAX; k++) {
			uint32_t n = (tree ? oracle_tree_of
					   : oracle_ring_of)(w->log, k, w->gpus_per_node, ranks);

			if (n)
				r = add_order(c, tree ? ALGO_TREE : ALGO_RING, k, ranks, n);
		}
	return r;
}

/* NCCL takes the first of the cheapest. */
static void set_point(const struct nccl_log *l, const struct oracle_costs *from,
		      struct decisions_point *p)
{
	uint32_t algos = from->n_algos < N_ALGOS ? from->n_algos : N_ALGOS;
	float least = -1;

	p->bytes = from->bytes;
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t k = 0; k < N_PROTOS; k++) {
			float us = a < algos ? from->us[a * from->n_protos + k] : -1;

			p->us[a][k] = us < 0 ? -1 : us;
			if (us < 0 || (least >= 0 && us >= least))
				continue;
			least = us;
			p->algo = a;
			p->proto = k;
		}
	p->n_channels = nccl_log_channels(l, p->algo, p->proto, from->bytes);
}

static enum nbox_op_kind kind_of(enum oracle_op op)
{
	return (enum nbox_op_kind)words_find(KIND_WORDS, oracle_op_names[op],
					     strlen(oracle_op_names[op]));
}

static bool has_choice(const struct oracle_costs *c)
{
	for (uint32_t i = 0; i < c->n_algos * c->n_protos; i++)
		if (c->us[i] >= 0)
			return true;
	return false;
}

static int set_ops(const struct oracle_world *w, struct decisions_comm *c, struct err *err)
{
	bool has_op = false;

	for (size_t i = 0; i < w->n_costs; i++) {
		struct decisions_op *op = &c->ops[kind_of(w->costs[i].op)];

		if (!has_choice(&w->costs[i]))
			return err_set(
				err, EINVAL,
				"NCCL can take nothing for %s of %llu bytes: NCCL_ALGO and NCCL_PROTO leave it "
				"none",
				oracle_op_names[w->costs[i].op],
				(unsigned long long)w->costs[i].bytes);
		if (!op->points)
			op->points = calloc(w->n_costs, sizeof(*op->points));
		if (!op->points)
			return err_set(err, ENOMEM, "out of memory");
		set_point(w->log, &w->costs[i], &op->points[op->n++]);
	}
	for (int k = 0; k < N_COSTED; k++) {
		if (c->ops[k].n == 1) /* costs between two sizes cannot be told of one */
			c->ops[k].n = 0;
		has_op |= c->ops[k].n > 0;
	}
	if (!has_op)
		return err_set(
			err, EINVAL,
			"%u ranks on %u nodes: no op has an element for each rank at two sizes: "
			"take a larger -e",
			w->n_ranks, w->n_nodes);
	return 0;
}

static int set_comm(const struct oracle_world *w, struct decisions_comm *c, struct err *err)
{
	const struct nccl_log *l = w->log;

	c->n_ranks = w->n_ranks;
	c->n_nodes = l->n_nodes ? (uint32_t)l->n_nodes : w->n_nodes;
	c->n_channels = l->n_channels;
	c->n_nvls_channels = l->n_nvls_channels;
	c->n_p2p_channels = l->n_p2p_channels;
	c->n_p2p_channels_per_peer = l->n_p2p_channels_per_peer;
	set_graphs(l, c);
	if (set_orders(w, c) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return set_ops(w, c, err);
}

int oracle_result(const struct oracle_nccl *n, const char *gpus, const char *made,
		  const struct oracle_world *worlds, size_t n_worlds, struct decisions *ret,
		  struct err *err)
{
	struct decisions d = {.n = 0};
	time_t now = time(NULL);
	struct tm tm;
	int r = 0;

	d.comms = calloc(n_worlds, sizeof(*d.comms));
	if (!d.comms)
		return err_set(err, ENOMEM, "out of memory");
	snprintf(d.nccl, sizeof(d.nccl), "%s", n->name);
	strftime(d.date, sizeof(d.date), "%Y-%m-%d", gmtime_r(&now, &tm));
	snprintf(d.gpus, sizeof(d.gpus), "%s", gpus);
	snprintf(d.made, sizeof(d.made), "%s", made);
	for (size_t i = 0; r == 0 && i < n_worlds; i++)
		r = set_comm(&worlds[i], &d.comms[d.n++], err);
	if (r < 0)
		decisions_deinit(&d);
	else
		*ret = d;
	return r;
}
