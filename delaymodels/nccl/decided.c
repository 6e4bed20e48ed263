/* See decided.h. */
#include "decided.h"

#include <math.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* --- graphs and channels ------------------------------------------------------------ */

static void take_graph(const struct decisions_graph *from, struct graph *g)
{
	if (!from->n_channels)
		return;
	g->n_channels = from->n_channels;
	g->intra_bw = from->bw_intra;
	g->inter_bw = from->bw_inter;
	g->intra_type = (enum path_type)from->type_intra; /* both have the numbers of 2.28 */
	g->inter_type = (enum path_type)from->type_inter;
	g->is_same = from->same_channels != 0;
	g->is_simple_tree = from->pattern == DECISIONS_PATTERN_TREE;
}

static int has_own_channels(const struct setting *s)
{
	return s->min_channels || s->min_ctas;
}

void decided_apply(const struct decisions *d, struct comm *c)
{
	const struct decisions_comm *told = decisions_find(d, c->n_ranks, c->n_nodes);
	const struct setting *s = c->setting;

	if (!told || c->most_local != c->least_local)
		return;
	c->told = told;
	take_graph(&told->graphs[ALGO_RING], &c->graphs.ring);
	take_graph(&told->graphs[ALGO_TREE], &c->graphs.tree);
	take_graph(&told->graphs[ALGO_NVLS], &c->graphs.nvls);
	comm_set_channels(c);
	if (has_own_channels(s)) /* as the user says */
		return;
	if (told->n_channels != DECISIONS_NOT_KNOWN)
		c->n_channels =
			smaller((uint32_t)told->n_channels, smaller(s->max_channels, s->max_ctas));
	if (told->n_nvls_channels > 0)
		c->n_nvls_channels = smaller((uint32_t)told->n_nvls_channels, s->max_ctas);
	if (told->n_p2p_channels != DECISIONS_NOT_KNOWN)
		c->n_p2p_channels = (uint32_t)told->n_p2p_channels;
	if (told->n_p2p_channels_per_peer != DECISIONS_NOT_KNOWN)
		c->n_p2p_peer_channels = (uint32_t)told->n_p2p_channels_per_peer;
}

const struct decisions_op *decided_op(const struct comm *c, uint32_t kind)
{
	return c->told && c->told->ops[kind].n ? &c->told->ops[kind] : NULL;
}

/* --- costs ------------------------------------------------------------------------------ */

/* The first size that is not below @bytes; op->n: there is none. */
static size_t find_size(const struct decisions_op *op, uint64_t bytes)
{
	size_t low = 0, high = op->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (op->points[mid].bytes < bytes)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What NCCL's latency and bytes count there: its cost is latency x ret[0] + ret[1] / bandwidth. */
static void find_terms(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		       uint64_t bytes, double ret[2])
{
	uint64_t channels = c->told->n_channels > 0 ? (uint64_t)c->told->n_channels : c->n_channels;

	ret[0] = cost_latencies(c, kind, algo, proto, bytes, channels);
	ret[1] = (double)bytes / (double)cost_share(c, kind, algo, proto, bytes);
}

static double between(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		      const struct decisions_point *a, const struct decisions_point *b,
		      uint64_t bytes)
{
	double ta = (double)a->us[algo][proto], tb = (double)b->us[algo][proto], ka[2], kb[2], k[2];
	double det, us, part;

	find_terms(c, kind, algo, proto, a->bytes, ka);
	find_terms(c, kind, algo, proto, b->bytes, kb);
	find_terms(c, kind, algo, proto, bytes, k);
	det = ka[0] * kb[1] - kb[0] * ka[1];
	us = ((ta * kb[1] - tb * ka[1]) * k[0] + (ka[0] * tb - kb[0] * ta) * k[1]) / det;
	if (us >= 0 && isfinite(us))
		return us;
	/* times that no latency and bandwidth give: a line between them, flat outside */
	part = ((double)bytes - (double)a->bytes) / ((double)b->bytes - (double)a->bytes);
	return ta + (tb - ta) * fmin(fmax(part, 0), 1);
}

float decided_us(const struct comm *c, const struct decisions_op *op, uint32_t kind, uint32_t algo,
		 uint32_t proto, uint64_t bytes, const char **ret_why_not)
{
	const char *why = cost_forbidden(c->setting, kind, algo, proto);
	const struct decisions_point *a, *b;
	size_t i = find_size(op, bytes);

	*ret_why_not = why ? why : "not considered, by the decision file";
	if (i < op->n && op->points[i].bytes == bytes)
		return why ? -1 : op->points[i].us[algo][proto];
	i = i == 0 ? 1 : i == op->n ? op->n - 1 : i;
	a = &op->points[i - 1];
	b = &op->points[i];
	if (why || a->us[algo][proto] < 0 || b->us[algo][proto] < 0)
		return -1;
	return (float)between(c, kind, algo, proto, a, b, bytes);
}

uint32_t decided_channels(const struct comm *c, const struct decisions_op *op, uint32_t algo,
			  uint32_t proto, uint64_t bytes)
{
	size_t i = find_size(op, bytes);
	const struct decisions_point *p = &op->points[i];
	const struct setting *s = c->setting;

	if (i == op->n || p->bytes != bytes || p->algo != algo || p->proto != proto ||
	    p->n_channels == DECISIONS_NOT_KNOWN || has_own_channels(s))
		return 0;
	return smaller((uint32_t)p->n_channels, smaller(s->max_channels, s->max_ctas));
}
