/* See world.h: nodes, rings and trees. */
#include "world.h"

struct rng rng;
struct world w;

uint32_t pick(uint32_t n)
{
	return (uint32_t)(rng_u64(&rng) % n);
}

uint64_t up_to(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

bool is_real(uint32_t rank)
{
	return w.real[w.node[rank]];
}

bool is_net(uint32_t a, uint32_t b)
{
	return w.node[a] != w.node[b];
}

bool is_direct(const struct op *op)
{
	return op->algorithm == WIRE_NCCL_DIRECT;
}

size_t element(const struct op *op)
{
	return coll_dtype_bytes(op->dtype);
}

void set_identity(const struct op *op, void *to, uint64_t n)
{
	static const int64_t least[] = {INT8_MIN, 0, INT32_MIN, 0, INT64_MIN},
			     most[] = {INT8_MAX, 0, INT32_MAX, 0, INT64_MAX};
	int64_t v = op->redop == COLL_PROD  ? 1
		    : op->redop == COLL_MAX ? least[op->dtype]
		    : op->redop == COLL_MIN ? most[op->dtype]
					    : 0;

	for (uint64_t i = 0; i < n; i++)
		memcpy((char *)to + i * element(op), &v, element(op));
}

void make_nodes(void)
{
	uint32_t size, label[NODES], seen = 0;

	w.n_nodes = 2 + pick(NODES - 2);
	size = 1 + pick(3);
	w.n = 0;
	for (uint32_t i = 0; i < w.n_nodes; i++)
		for (uint32_t k = 0; k < size && w.n < RANKS && (k == 0 || pick(8)); k++)
			w.named[w.n++] = i * 3 + 1;
	w.n_nodes = w.named[w.n - 1] / 3 + 1;
	for (uint32_t i = w.n; i > 1 && pick(3) == 0; i--) { /* in any order, now and then */
		uint32_t k = pick(i), t = w.named[k];

		w.named[k] = w.named[i - 1];
		w.named[i - 1] = t;
	}
	for (uint32_t i = 0; i < w.n; i++) {
		uint32_t k = 0;

		while (k < seen && label[k] != w.named[i])
			k++;
		if (k == seen)
			label[seen++] = w.named[i];
		w.node[i] = k;
	}
	memset(w.real, 0, sizeof(w.real));
	for (uint32_t i = 1 + pick(4); i > 0; i--)
		w.real[pick(w.n_nodes)] = true;
}

static uint32_t any_on(uint32_t node)
{
	uint32_t r;

	do
		r = pick(w.n);
	while (w.node[r] != node);
	return r;
}

void make_channels(void)
{
	w.n_trees = 1 + pick(2);
	w.n_channels = 2 * w.n_trees;
	for (uint32_t c = 0; c < w.n_channels; c++) {
		uint32_t at = 0;

		for (uint32_t node = 0; node < w.n_nodes; node++) {
			uint32_t first = at;

			for (uint32_t r = 0; r < w.n; r++)
				if (w.node[r] == node)
					w.ring[c][at++] = r;
			for (uint32_t i = at; i > first + 1; i--) {
				uint32_t k = first + pick(i - first), t = w.ring[c][k];

				w.ring[c][k] = w.ring[c][i - 1];
				w.ring[c][i - 1] = t;
			}
			w.up[c][node] = any_on(node);
			w.down[c][node][0] = any_on(node);
			w.down[c][node][1] = any_on(node);
		}
		for (uint32_t i = 0; i < w.n; i++)
			w.place[c][w.ring[c][i]] = i;
	}
}
