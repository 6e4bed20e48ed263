/* A scheduler whose plan is its parameters, right or wrong in one way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nbox-delaymodel.h"

#define WRONGS \
	"none|lanes|rails|chunk|wire|base|step|lane_bw|whole|no_whole|algo|cost|silent|variable"
enum wrong {
	RIGHT,
	LANES,
	RAILS,
	CHUNK,
	WIRE,
	BASE,
	STEP,
	LANE_BW,
	WHOLE,
	NO_WHOLE,
	ALGO,
	COST,
	SILENT,
	VARIABLE /* which the job has not set */
};

struct planner {
	const struct nbox_host *host;
	uint32_t wrong, algo, lanes, rails, slices;
	uint64_t chunk_bytes;
	double wire, base_ns, step_ns[2], lane_bw, whole_ns;
	uint64_t n_asked;
};

static int count(const struct nbox_host *h, const struct nbox_kv *kv, size_t n_kv, const char *key,
		 uint32_t *ret)
{
	uint64_t n = *ret;
	int r = h->parse_count(h, key, nbox_value(kv, n_kv, key), &n);

	*ret = (uint32_t)n;
	return r;
}

static int parse(struct planner *p, const struct nbox_kv *kv, size_t n)
{
	const struct nbox_host *h = p->host;

	return h->parse_choice(h, "wrong", nbox_value(kv, n, "wrong"), WRONGS, &p->wrong) < 0 ||
			       h->parse_choice(h, "algo", nbox_value(kv, n, "algo"),
					       "ring|tree|direct|chain|nvls|nvls_tree|pat|collnet",
					       &p->algo) < 0 ||
			       count(h, kv, n, "lanes", &p->lanes) < 0 ||
			       count(h, kv, n, "rails", &p->rails) < 0 ||
			       count(h, kv, n, "slices", &p->slices) < 0 ||
			       h->parse_bytes(h, "chunk", nbox_value(kv, n, "chunk"),
					      &p->chunk_bytes) < 0 ||
			       h->parse_ratio(h, "wire", nbox_value(kv, n, "wire"), &p->wire) < 0 ||
			       h->parse_time(h, "base", nbox_value(kv, n, "base"), &p->base_ns) <
				       0 ||
			       h->parse_time(h, "step_intra", nbox_value(kv, n, "step_intra"),
					     &p->step_ns[NBOX_INTRA]) < 0 ||
			       h->parse_time(h, "step_inter", nbox_value(kv, n, "step_inter"),
					     &p->step_ns[NBOX_INTER]) < 0 ||
			       h->parse_bandwidth(h, "lane_bw", nbox_value(kv, n, "lane_bw"),
						  &p->lane_bw) < 0 ||
			       h->parse_time(h, "whole", nbox_value(kv, n, "whole"), &p->whole_ns) <
				       0
		       ? -1
		       : 0;
}

static int create(const struct nbox_host *host, const struct nbox_next *next,
		  const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct planner *p = calloc(1, sizeof(*p));

	(void)next;
	if (!p)
		return -1;
	*p = (struct planner){.host = host,
			      .algo = UINT32_MAX,
			      .lanes = 1,
			      .rails = 1,
			      .slices = 1,
			      .chunk_bytes = 1 << 20,
			      .wire = 1,
			      .whole_ns = -1};
	if (parse(p, kv, n_kv) < 0) {
		free(p);
		return -1;
	}
	*ret_model = p;
	return 0;
}

static uint32_t algo_of(uint32_t kind)
{
	return kind <= NBOX_REDUCESCATTER ? NBOX_RING
	       : kind <= NBOX_REDUCE      ? NBOX_CHAIN
					  : NBOX_DIRECT;
}

static void spoil(uint32_t wrong, struct nbox_plan *ret)
{
	ret->n_lanes = wrong == LANES ? 0 : ret->n_lanes;
	ret->n_rails = wrong == RAILS ? 4096 : ret->n_rails;
	ret->chunk_bytes = wrong == CHUNK ? 0 : ret->chunk_bytes;
	ret->wire_factor = wrong == WIRE ? 0.5 : ret->wire_factor;
	ret->base_ns = wrong == BASE ? NAN : ret->base_ns;
	ret->step_ns[1] = wrong == STEP ? -1 : ret->step_ns[1];
	ret->lane_bytes_per_ns[0] = wrong == LANE_BW ? INFINITY : ret->lane_bytes_per_ns[0];
	ret->whole_ns = wrong == WHOLE ? 5 : wrong == NO_WHOLE ? -1 : ret->whole_ns;
	ret->algo = wrong == NO_WHOLE ? NBOX_PAT : wrong == ALGO ? 77 : ret->algo;
	ret->candidates[0].cost_ns = wrong == COST ? NAN : 1;
}

static int plan(void *model, const struct nbox_op *op, const struct nbox_fabric *fabric,
		struct nbox_plan *ret)
{
	struct planner *p = model;

	if (p->wrong == SILENT)
		return -1;
	if (p->wrong == VARIABLE && p->host->variable(p->host, "NBOX_TEST_VARIABLE")) {
		p->host->error(p->host, "NBOX_TEST_VARIABLE is %s",
			       p->host->variable(p->host, "NBOX_TEST_VARIABLE"));
		return -1;
	}
	if (fabric->n_domains == 0)
		return 1;
	ret->algo = p->algo == UINT32_MAX ? algo_of(op->kind) : p->algo;
	ret->proto = NBOX_SIMPLE;
	ret->n_lanes = p->lanes;
	ret->n_rails = fabric->n_nics && p->rails > fabric->n_nics ? fabric->n_nics : p->rails;
	ret->n_slices = p->slices;
	ret->chunk_bytes = p->chunk_bytes;
	ret->wire_factor = p->wire;
	ret->base_ns = p->base_ns;
	for (int i = 0; i < 2; i++) {
		ret->step_ns[i] = p->step_ns[i];
		ret->lane_bytes_per_ns[i] = p->lane_bw;
	}
	ret->whole_ns = p->whole_ns;
	ret->estimate_ns = (double)++p->n_asked; /* tells a test how often it was asked */
	ret->n_candidates = 1;
	ret->candidates[0] = (struct nbox_candidate){ret->algo, ret->proto, 1, NULL};
	ret->source = "its parameters";
	spoil(p->wrong, ret);
	return 0;
}

static const struct nbox_param params[] = {
	{"wrong", "choice", "none", "what of the plan is wrong"},
	{"algo", "choice", "by the op's kind", "algorithm"},
	{"lanes", "count", "1", "lanes"},
	{"rails", "count", "1", "rails"},
	{"slices", "count", "1", "slices of a chunk"},
	{"chunk", "bytes", "1M", "most bytes of a step"},
	{"wire", "ratio", "1", "wire bytes / bytes"},
	{"base", "time", "0us", "once an op"},
	{"step_intra", "time", "0us", "of a message inside a domain"},
	{"step_inter", "time", "0us", "of a message between domains"},
	{"lane_bw", "bandwidth", "no limit", "most of a lane"},
	{"whole", "time", "none", "the op's time"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, .name = "planner", .summary = "plans what its parameters say",
	.flags = NBOX_STEADY, .params = params,  .create = create,
	.destroy = free,      .plan = plan,
};
