/* pinned: a scheduler whose plans are its parameters. Nothing but the links takes time: no step of
 * the sender's or receiver's, no cost of the op's own. For networks whose ranks are known to do
 * just that, as those of nbox's lab do, and for schedules that somebody wants to compare. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

#define CHUNK_MAX (UINT64_C(64) << 40)

struct pinned {
	uint32_t is_tree, proto;
	uint64_t channels, chunk_bytes, slices;
};

static int parse(struct pinned *p, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	if (h->parse_choice(h, "algo", nbox_value(kv, n, "algo"), "ring|tree", &p->is_tree) < 0 ||
	    h->parse_choice(h, "proto", nbox_value(kv, n, "proto"), "ll|ll128|simple", &p->proto) <
		    0 ||
	    h->parse_count(h, "channels", nbox_value(kv, n, "channels"), &p->channels) < 0 ||
	    h->parse_count(h, "slices", nbox_value(kv, n, "slices"), &p->slices) < 0 ||
	    h->parse_bytes(h, "chunk", nbox_value(kv, n, "chunk"), &p->chunk_bytes) < 0)
		return -1;
	if (p->channels < 1 || p->channels > 512 || p->slices < 1 || p->slices > 16)
		h->error(h, "channels=%llu, slices=%llu: 1 to 512 channels, 1 to 16 slices",
			 (unsigned long long)p->channels, (unsigned long long)p->slices);
	else if (p->chunk_bytes < 32 || p->chunk_bytes > CHUNK_MAX)
		h->error(h, "chunk=%lluB: at least 32B, at most 64T",
			 (unsigned long long)p->chunk_bytes);
	else
		return 0;
	return -1;
}

static int create(const struct nbox_host *host, const struct nbox_next *next,
		  const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct pinned *p = calloc(1, sizeof(*p));

	(void)next;
	if (!p) {
		host->error(host, "out of memory");
		return -1;
	}
	*p = (struct pinned){.proto = NBOX_SIMPLE,
			     .channels = 1,
			     .chunk_bytes = 1 << 20,
			     .slices = 1};
	if (parse(p, host, kv, n_kv) < 0) {
		free(p);
		return -1;
	}
	*ret_model = p;
	return 0;
}

static uint32_t algo_of(const struct pinned *p, uint32_t kind)
{
	switch (kind) {
	case NBOX_ALLREDUCE:
		return p->is_tree ? NBOX_TREE : NBOX_RING;
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
		return NBOX_RING;
	case NBOX_BROADCAST:
	case NBOX_REDUCE:
		return NBOX_CHAIN;
	default:
		return NBOX_DIRECT;
	}
}

static int plan(void *model, const struct nbox_op *op, const struct nbox_fabric *fabric,
		struct nbox_plan *ret)
{
	static const double wire[] = {[NBOX_LL] = 2, [NBOX_LL128] = 16.0 / 15, [NBOX_SIMPLE] = 1};
	const struct pinned *p = model;
	uint32_t rails = fabric->n_nics < 1 ? 1 : fabric->n_nics;

	ret->algo = algo_of(p, op->kind);
	if (op->kind == NBOX_ALLREDUCE && op->algo != NBOX_ALGO_ANY)
		ret->algo = op->algo;
	ret->proto = p->proto;
	ret->wire_factor = wire[p->proto];
	ret->n_lanes = (uint32_t)p->channels;
	ret->chunk_bytes = p->chunk_bytes;
	ret->n_slices = (uint32_t)p->slices;
	ret->n_rails = rails < ret->n_lanes ? rails : ret->n_lanes;
	if (ret->algo == NBOX_TREE) { /* each channel has both trees, and half a chunk in either */
		ret->n_lanes *= 2;
		ret->chunk_bytes /= 2;
	}
	ret->source = "the parameters of pinned";
	return 0;
}

static const struct nbox_param params[] = {
	{"algo", "choice", "ring", "algorithm of AllReduce: ring or tree"},
	{"proto", "choice", "simple", "protocol: ll, ll128 or simple"},
	{"channels", "count", "1", "channels"},
	{"chunk", "bytes", "1M", "most bytes of a step of a channel"},
	{"slices", "count", "1", "messages that a step is cut into"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD,
	.name = "pinned",
	.summary = "algorithm, protocol, channels and chunk as given; only links take time",
	.flags = NBOX_STEADY,
	.params = params,
	.create = create,
	.destroy = free,
	.plan = plan,
};
