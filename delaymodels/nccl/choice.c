/* See choice.h. */
#include "choice.h"

#include <stddef.h>

#define STEPS 8 /* a buffer has so many */
#define MIN_TRAFFIC (16 << 10)

static uint64_t div_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* --- channels and threads -------------------------------------------------------- */

static uint32_t most_threads(const struct comm *c, uint32_t algo, uint32_t proto)
{
	const struct graph *ring = &c->graphs.ring;
	uint32_t own = c->setting->n_threads;

	if (algo != ALGO_TREE && algo != ALGO_RING)
		return 0; /* these keep their channels however few the bytes */
	if (proto == NBOX_LL128)
		return c->setting->n_ll128_threads ? c->setting->n_ll128_threads : 640;
	if (own)
		return own;
	return algo == ALGO_RING && proto == NBOX_SIMPLE &&
			       ring->intra_bw * (float)ring->n_channels <= 12
		       ? 256
		       : 512;
}

static int64_t threshold(const struct comm *c, uint32_t algo, uint32_t proto)
{
	static const int64_t own[N_PROTOS] = {8, 8, 64};

	if (algo <= ALGO_RING && c->setting->thresholds[algo][proto] >= 0)
		return c->setting->thresholds[algo][proto];
	return algo == ALGO_RING && proto == NBOX_LL ? own[proto] * c->n_ranks : own[proto];
}

/* A thread should have so many bytes; channels go first, then threads. */
static void set_channels(const struct comm *c, uint64_t bytes, struct choice *ch)
{
	uint64_t least = (uint64_t)threshold(c, ch->algo, ch->proto);
	uint32_t n = c->n_channels, nt = most_threads(c, ch->algo, ch->proto);

	if (ch->algo == ALGO_NVLS || ch->algo == ALGO_NVLS_TREE) {
		n = c->n_nvls_channels;
	} else {
		while (n >= 2 && bytes < n * nt * least)
			n--;
		while (nt % 128 == 0 && bytes < n * nt * least)
			nt /= 2;
	}
	if (ch->proto == NBOX_SIMPLE && ch->algo == ALGO_RING)
		nt += 32; /* a warp for synchronisation */
	nt = nt < 96 ? 96 : nt;
	ch->n_channels = n;
	ch->n_threads = ch->algo == ALGO_RING ? nt : 640;
}

/* --- bytes over channels ---------------------------------------------------------- */

/* Cells of at least 16 KiB of traffic are dealt to the channels, so that few bytes take few. */
static void deal(const struct comm *c, uint32_t kind, uint64_t bytes, struct choice *ch)
{
	int gathers = kind == NBOX_ALLGATHER || kind == NBOX_REDUCESCATTER;
	uint64_t per_byte = kind == NBOX_ALLREDUCE ? 2 : gathers ? c->n_ranks : 1;
	uint64_t whole = gathers ? c->n_ranks : 1, own = bytes / whole;
	uint64_t traffic, per_channel, cell, cells, a_channel, used;

	if (ch->proto == NBOX_LL)
		per_byte *= 4;
	traffic = own * per_byte;
	per_channel = (traffic > MIN_TRAFFIC ? traffic : MIN_TRAFFIC) / ch->n_channels;
	per_channel = per_channel > MIN_TRAFFIC ? per_channel : MIN_TRAFFIC;
	cell = div_up(div_up(MIN_TRAFFIC, per_byte), 16) * 16;
	cells = div_up(own, cell);
	a_channel = div_up(per_channel, cell * per_byte);
	a_channel = a_channel < cells ? a_channel : cells;
	used = a_channel ? div_up(cells, a_channel) : 1;
	if (used > ch->n_channels) {
		used = ch->n_channels;
		a_channel = div_up(cells, used);
	}
	ch->n_channels = (uint32_t)used;
	ch->lane_bytes = a_channel * cell < own ? a_channel * cell : own;
	ch->channel_bytes = ch->lane_bytes * whole;
}

/* --- chunks ------------------------------------------------------------------------ */

static uint64_t tree_ll128_chunk(const struct comm *c, uint64_t bytes, uint64_t chunk)
{
	float ppn = (float)c->n_ranks / (float)c->n_nodes;
	uint32_t log = 31 - (uint32_t)__builtin_clz(c->n_nodes);
	float steps = (float)((float)(1 + log) + 0.1 * ppn);

	while ((float)(bytes / chunk) < steps * 64 / ppn && chunk > 131072)
		chunk /= 2;
	while ((float)(bytes / chunk) < steps * 16 / ppn && chunk > 32768)
		chunk /= 2;
	return chunk;
}

static uint64_t nvls_chunk(const struct comm *c, const struct choice *ch)
{
	uint64_t chunk = 128 << 10, heads = c->graphs.nvls.n_channels, bytes = ch->channel_bytes;

	heads = heads ? heads : 1;
	if (ch->algo == ALGO_NVLS) {
		if (bytes < 64 * heads * chunk && chunk > 65536)
			chunk = 65536;
		if (bytes < 8 * heads * chunk && chunk > 32768)
			chunk = 32768;
		if (bytes < 2 * heads * chunk && chunk > 16384)
			chunk = 16384;
		return chunk;
	}
	if (c->n_nodes >= 4)
		chunk = 65536;
	if (bytes < 4 * heads * chunk && chunk > 65536)
		chunk = 65536;
	if (bytes < heads * chunk && chunk > 32768)
		chunk = 32768;
	return chunk;
}

static void set_chunk(const struct comm *c, uint32_t kind, struct choice *ch)
{
	static const uint64_t grains[N_PROTOS] = {16, 1920, 512};
	uint64_t step = c->setting->buffer_bytes[ch->proto] / STEPS, chunk = step;
	int is_ring = ch->algo == ALGO_RING && ch->proto == NBOX_SIMPLE && kind != NBOX_BROADCAST &&
		      kind != NBOX_REDUCE;

	ch->n_slices = is_ring ? 2 : 1;
	if (is_ring)
		chunk *= 4;
	if (ch->proto == NBOX_LL)
		chunk /= 2;
	if (ch->proto == NBOX_LL128)
		chunk = chunk / 16 * 15;
	if (ch->algo == ALGO_NVLS || ch->algo == ALGO_NVLS_TREE)
		chunk = nvls_chunk(c, ch);
	if (ch->algo == ALGO_TREE && ch->proto == NBOX_LL128)
		chunk = tree_ll128_chunk(c, ch->channel_bytes, chunk);
	if (ch->algo == ALGO_PAT)
		while (chunk * (kind == NBOX_ALLGATHER ? 32 : 16) > ch->channel_bytes &&
		       chunk > 65536)
			chunk /= 2;
	ch->chunk_bytes = chunk / grains[ch->proto] * grains[ch->proto];
}

/* --- the choice -------------------------------------------------------------------- */

float choice_us(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto, uint64_t bytes,
		const char **ret_why_not)
{
	const struct decisions_op *told = decided_op(c, kind);
	struct cost cost;

	if (told)
		return decided_us(c, told, kind, algo, proto, bytes, ret_why_not);
	*ret_why_not = "NCCL has no such algorithm";
	if (!cost_exists(kind, algo, proto))
		return -1;
	cost_find(c, kind, algo, proto, &cost);
	*ret_why_not = cost.why_not;
	return cost_us(c, &cost, kind, algo, proto, bytes);
}

int choice_take(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		uint32_t n_channels, uint64_t bytes, struct choice *ret)
{
	struct choice ch = {.algo = algo, .proto = proto};
	const char *why_not;

	if (!cost_exists(kind, algo, proto) ||
	    (proto != NBOX_SIMPLE && cost_bus_bw(c, kind, algo, proto) <= 0))
		return -1;
	ch.cost_us = choice_us(c, kind, algo, proto, bytes, &why_not);
	if (algo > ALGO_RING && ch.cost_us < 0)
		return -1;
	ch.n_of_comm = c->n_channels;
	set_channels(c, bytes, &ch);
	deal(c, kind, bytes, &ch);
	if (n_channels) {
		/* where so many bytes would take more it has no more */
		if (n_channels < ch.n_channels || n_channels > ch.n_of_comm)
			ch.n_of_comm = n_channels;
		ch.n_channels = n_channels;
		deal(c, kind, bytes, &ch);
	}
	set_chunk(c, kind, &ch);
	*ret = ch;
	return 0;
}

int choice_make(const struct comm *c, const struct tuner *t, uint32_t kind, uint64_t bytes,
		struct choice *ret)
{
	const struct tuner_rule *rule = tuner_find(t, kind, bytes, c->n_nodes, c->n_ranks);
	const struct decisions_op *told;
	uint32_t n_told;
	struct choice ch = {.algo = N_ALGOS};

	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t p = 0; p < N_PROTOS; p++) {
			const char *why_not;
			float us = choice_us(c, kind, a, p, bytes, &why_not);

			if (us >= 0 && rule && rule->algo == a && rule->proto == p)
				us = 0;
			if (us < 0 || (ch.algo != N_ALGOS && us >= ch.cost_us))
				continue;
			ch.algo = a;
			ch.proto = p;
			ch.cost_us = us;
		}
	if (ch.algo == N_ALGOS)
		return -1;
	set_channels(c, bytes, &ch);
	ch.n_of_comm = c->n_channels;
	told = decided_op(c, kind);
	n_told = told ? decided_channels(c, told, ch.algo, ch.proto, bytes) : 0;
	ch.n_channels = n_told ? n_told : ch.n_channels;
	if (rule && ch.cost_us == 0 && rule->n_channels > 0)
		ch.n_channels = rule->n_channels < (int64_t)c->n_channels
					? (uint32_t)rule->n_channels
					: c->n_channels;
	deal(c, kind, bytes, &ch);
	set_chunk(c, kind, &ch);
	*ret = ch;
	return 0;
}
