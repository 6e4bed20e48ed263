/* See p2p.h. NCCL has no cost model here: a peer has two channels a NIC, fewer the more ranks share
 * the communicator's channels; its bytes go in parts of half to one chunk. */
#include "p2p.h"

#define LL_MOST (16 << 10) /* bytes a channel, inside a node */

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Of @all channels of the communicator. */
static uint32_t peer_channels(const struct comm *c, uint32_t all)
{
	uint32_t n = 2;

	if (c->n_nodes == 1) {
		if (c->graphs.ring.intra_type == PATH_NVLINK)
			n = 2 * c->n_nvlinks;
		return power_of_two(n < c->n_channels ? n : c->n_channels);
	}
	while (n > 1 && n * c->n_ranks > all * 4)
		n /= 2;
	return n < all ? n : all;
}

void p2p_make(const struct comm *c, uint64_t bytes, struct p2p *ret)
{
	int is_inter = c->n_nodes > 1, has_nvlink = c->graphs.ring.intra_type == PATH_NVLINK;
	uint64_t buffer = c->setting->buffer_bytes[NBOX_SIMPLE] / 8, step, least, most;
	uint32_t all = power_of_two(c->n_channels), peer = peer_channels(c, all), n;
	struct p2p p = {.proto = NBOX_SIMPLE};

	if (c->n_p2p_channels && c->n_p2p_channels < all)
		all = c->n_p2p_channels;
	if (c->n_p2p_peer_channels)
		peer = c->n_p2p_peer_channels;
	n = peer = peer < all ? peer : all;

	if (!is_inter && bytes <= peer * LL_MOST)
		p.proto = NBOX_LL;
	step = is_inter || !has_nvlink ? c->setting->p2p_chunk_bytes : 512 << 10;
	step = step < buffer ? step : buffer;
	if (p.proto == NBOX_LL)
		step = c->setting->buffer_bytes[NBOX_LL] / 8;
	least = is_inter ? step / 2 : step / 8;
	most = is_inter ? step : step * 32;
	while (n > 1 && n * c->n_ranks > all)
		n /= 2;
	if (bytes < n * least)
		n = bytes ? (uint32_t)((bytes + least - 1) / least) : 1;
	while (n <= peer / 2 && (bytes + n - 1) / n > most)
		n *= 2;
	p.n_channels = n;
	p.chunk_bytes = step;
	if (is_inter && bytes < step)
		p.chunk_bytes = step / 4;
	else if (is_inter && bytes < 8 * step)
		p.chunk_bytes = step / 2;
	if (p.proto == NBOX_LL)
		p.chunk_bytes /= 2;
	*ret = p;
}
