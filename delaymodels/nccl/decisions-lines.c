/* See decisions-reading.h. */
#include <stdlib.h>
#include <string.h>

#include "decisions-reading.h"

#define POINTS_MAX 4096
#define ORDERS_MAX 128 /* two of each of NCCL's channels */
#define BYTES_MOST (UINT64_C(1) << 50)
#define US_MOST 1e12
#define GBS_MOST 1e6

int reading_need_shape(struct reading *r, const char *what)
{
	if (r->comm->n_ranks && r->comm->n_nodes)
		return 0;
	return reading_wrong(r, "%s stands in front of the communicator's ranks and nodes", what);
}

enum {
	GRAPH_CHANNELS,
	GRAPH_BW_INTRA,
	GRAPH_BW_INTER,
	GRAPH_TYPE_INTRA,
	GRAPH_TYPE_INTER,
	GRAPH_PATTERN,
	GRAPH_CROSS,
	GRAPH_SAME,
	GRAPH_KEYS
};
#define GRAPH_NAMES \
	"channels|bw_intra|bw_inter|type_intra|type_inter|pattern|cross_nic|same_channels"

static int take_graph_value(struct reading *r, uint32_t key, const char *name, const char *value,
			    struct decisions_graph *g)
{
	uint64_t v = 0;
	int failed = 0;

	switch (key) {
	case GRAPH_BW_INTRA:
		return reading_float(r, name, value, GBS_MOST, &g->bw_intra);
	case GRAPH_BW_INTER:
		return reading_float(r, name, value, GBS_MOST, &g->bw_inter);
	case GRAPH_TYPE_INTRA:
		return reading_choice(r, name, value, DECISIONS_PATHS, &g->type_intra);
	case GRAPH_TYPE_INTER:
		return reading_choice(r, name, value, DECISIONS_PATHS, &g->type_inter);
	case GRAPH_PATTERN:
		return reading_choice(r, name, value, DECISIONS_PATTERNS, &g->pattern);
	case GRAPH_CHANNELS:
		failed = reading_count(r, name, value, 1, CHANNELS_MAX, &v);
		g->n_channels = (uint32_t)v;
		return failed;
	case GRAPH_CROSS:
		failed = reading_count(r, name, value, 0, 2, &v);
		g->cross_nic = (uint32_t)v;
		return failed;
	default:
		failed = reading_count(r, name, value, 0, 1, &v);
		g->same_channels = (uint32_t)v;
		return failed;
	}
}

int reading_graph(struct reading *r, const char *name, char *value)
{
	struct decisions_graph g = {0}, *to;
	unsigned int seen = 0;
	uint32_t graph = 0, key = 0;

	if (reading_choice(r, "graph", name, DECISIONS_GRAPHS, &graph) < 0)
		return -1;
	to = &r->comm->graphs[graph];
	if (to->n_channels)
		return reading_wrong(r, "graph %s stands there twice", name);
	while (*value) {
		char *word = reading_word(&value), *number = reading_word(&value);

		if (reading_choice(r, "graph", word, GRAPH_NAMES, &key) < 0 ||
		    take_graph_value(r, key, word, number, &g) < 0)
			return -1;
		if (seen & (1u << key))
			return reading_wrong(r, "%s stands there twice", word);
		seen |= 1u << key;
	}
	if (seen != (1u << GRAPH_KEYS) - 1)
		return reading_wrong(r, "graph %s must have each of " GRAPH_NAMES, name);
	*to = g;
	return 0;
}

static int take_order_ranks(struct reading *r, char *value, struct decisions_order *o)
{
	uint32_t local = r->comm->n_ranks / r->comm->n_nodes;
	uint8_t has[LOCAL_MAX] = {0};

	while (*value) {
		uint64_t rank = 0;

		if (reading_count(r, "order", reading_word(&value), 0, local - 1, &rank) < 0)
			return -1;
		if (has[rank]++)
			return reading_wrong(r, "order: rank %u stands there twice",
					     (unsigned int)rank);
		o->ranks[o->n++] = (uint16_t)rank;
	}
	return o->n == local
		       ? 0
		       : reading_wrong(r, "order: %u ranks, a node of this communicator has %u",
				       o->n, local);
}

int reading_order(struct reading *r, char *name, char *value)
{
	struct decisions_comm *c = r->comm;
	struct decisions_order *o;
	uint64_t channel = 0;
	uint32_t graph = 0;

	if (reading_need_shape(r, "an order") < 0 ||
	    reading_choice(r, "order", reading_word(&name), "tree|ring", &graph) < 0 ||
	    reading_count(r, "order", reading_word(&name), 0, CHANNELS_MAX - 1, &channel) < 0)
		return -1;
	for (size_t i = 0; i < c->n_orders; i++)
		if (c->orders[i].graph == graph && c->orders[i].channel == channel)
			return reading_wrong(r, "channel %u has its order twice",
					     (unsigned int)channel);
	if (c->n_orders == ORDERS_MAX)
		return reading_wrong(r, "more than %d orders", ORDERS_MAX);
	if (reading_grow(r, (void **)&c->orders, c->n_orders, sizeof(*o)) < 0)
		return -1;
	o = &c->orders[c->n_orders];
	*o = (struct decisions_order){.graph = graph, .channel = (uint32_t)channel};
	o->ranks = malloc((c->n_ranks / c->n_nodes) * sizeof(o->ranks[0]));
	if (!o->ranks)
		return reading_wrong(r, "out of memory");
	c->n_orders++;
	return take_order_ranks(r, value, o);
}

/* "nvlstree/simple" */
static int take_pair(struct reading *r, char *word, uint32_t *ret_algo, uint32_t *ret_proto)
{
	char *slash = strchr(word, '/');

	if (!slash)
		return reading_wrong(r, "'%.60s' is no algorithm/protocol, as in ring/ll128", word);
	*slash = '\0';
	return reading_choice(r, "the algorithm", word, ALGO_WORDS, ret_algo) < 0 ||
			       reading_choice(r, "the protocol", slash + 1, PROTO_WORDS,
					      ret_proto) < 0
		       ? -1
		       : 0;
}

/* NCCL takes the first of the cheapest in the order of enum algo and enum nbox_proto. */
static int check_taken(struct reading *r, const struct decisions_point *p)
{
	float us = p->us[p->algo][p->proto];

	if (us < 0)
		return reading_wrong(r, "what NCCL takes is not among what has a cost behind 'of'");
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t q = 0; q < N_PROTOS; q++) {
			int is_before = a < p->algo || (a == p->algo && q < p->proto), n, m;
			const char *algo = words_at(ALGO_WORDS, a, &n);
			const char *proto = words_at(PROTO_WORDS, q, &m);

			if (p->us[a][q] >= 0 &&
			    (p->us[a][q] < us || (is_before && p->us[a][q] == us)))
				return reading_wrong(
					r,
					"NCCL would take %.*s/%.*s, of %g us, before what "
					"stands here: the line was changed by hand, or NCCL "
					"was under another tuner",
					n, algo, m, proto, (double)p->us[a][q]);
		}
	return 0;
}

static int take_costs(struct reading *r, char *value, struct decisions_point *p)
{
	while (*value) {
		char *word = reading_word(&value), *cost = reading_word(&value);
		uint32_t a = 0, q = 0;

		if (take_pair(r, word, &a, &q) < 0)
			return -1;
		if (p->us[a][q] >= 0)
			return reading_wrong(r, "%s/%s has two costs", word,
					     word + strlen(word) + 1);
		if (reading_float(r, "a cost", cost, US_MOST, &p->us[a][q]) < 0)
			return -1;
	}
	return check_taken(r, p);
}

int reading_point(struct reading *r, const char *bytes, char *value)
{
	struct decisions_op *op = r->op;
	struct decisions_point p = {0};

	if (!op)
		return reading_wrong(r, "'at' stands in front of the first [cost KIND]");
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t q = 0; q < N_PROTOS; q++)
			p.us[a][q] = -1;
	if (reading_count(r, "at", bytes, 1, BYTES_MOST, &p.bytes) < 0)
		return -1;
	if (op->n && op->points[op->n - 1].bytes >= p.bytes)
		return reading_wrong(r, "%llu bytes after %llu: sizes must rise, each once",
				     (unsigned long long)p.bytes,
				     (unsigned long long)op->points[op->n - 1].bytes);
	if (op->n == POINTS_MAX)
		return reading_wrong(r, "more than %d sizes", POINTS_MAX);
	if (take_pair(r, reading_word(&value), &p.algo, &p.proto) < 0 ||
	    reading_channels(r, "channels", reading_word(&value), 1, &p.n_channels) < 0)
		return -1;
	if (strcmp(reading_word(&value), "of") != 0)
		return reading_wrong(r, "at: 'of' and the costs come behind the channels (or -)");
	if (take_costs(r, value, &p) < 0 ||
	    reading_grow(r, (void **)&op->points, op->n, sizeof(p)) < 0)
		return -1;
	op->points[op->n++] = p;
	return 0;
}
