#include "world.h"

#include <string.h>

void world_make(struct world *w, struct rng *rng, uint32_t n_real_nodes, uint32_t n_nodes,
		uint32_t per_node, bool is_odd)
{
	uint32_t order[WORLD_RANKS_MAX], k, x;

	w->n = n_nodes * per_node;
	w->n_real = 0;
	for (uint32_t r = 0; r < w->n; r++)
		order[r] = r;
	for (uint32_t r = w->n - 1; r > 0 && is_odd; r--) {
		k = (uint32_t)below(rng, r + 1);
		x = order[r];
		order[r] = order[k];
		order[k] = x;
	}
	for (uint32_t node = 0; node < n_nodes; node++) {
		uint32_t of = node < n_real_nodes ? node : (uint32_t)below(rng, n_real_nodes);

		for (uint32_t i = 0; i < per_node; i++) {
			w->node[order[node * per_node + i]] = node;
			w->template[order[node * per_node + i]] = order[of * per_node + i];
		}
	}
	for (uint32_t r = 0; r < w->n; r++) {
		if (w->template[r] == r)
			w->real[w->n_real++] = r;
	}
}

void world_part(const struct world *w, const uint32_t *ranks, uint32_t n, struct world *ret)
{
	ret->n = n;
	ret->n_real = 0;
	for (uint32_t i = 0; i < n; i++) {
		ret->node[i] = w->node[ranks[i]];
		for (uint32_t k = 0; k < n; k++) {
			if (ranks[k] == w->template[ranks[i]])
				ret->template[i] = k;
		}
		if (w->template[ranks[i]] == ranks[i])
			ret->real[ret->n_real++] = i;
	}
}

static void noise(uint64_t seed, uint32_t rank, uint8_t *record, uint32_t bytes)
{
	struct rng rng;

	rng_seed(&rng, seed, rank);
	for (uint32_t i = 0; i < bytes; i++)
		record[i] = (uint8_t)rng_u64(&rng);
}

void world_peer(const struct nccl_records *t, const struct world *w, uint32_t rank, uint64_t seed,
		uint8_t *ret_record)
{
	noise(seed, rank, ret_record, t->peer.bytes);
	record_set_int(ret_record, t->peer.rank, (int32_t)rank);
}

void world_graph(const struct nccl_records *t, const struct world *w, uint32_t rank, uint64_t seed,
		 uint8_t *ret_record)
{
	const struct record_graph *g = &t->graph;
	uint32_t mates[WORLD_RANKS_MAX], n = 0;

	noise(seed + 1, rank, ret_record, g->bytes);
	for (uint32_t r = 0; r < w->n; r++) {
		if (w->node[r] == w->node[rank])
			mates[n++] = r;
	}
	for (uint32_t i = 0; i < g->n_graphs; i++)
		record_set_int(ret_record + i * g->graph_bytes, g->n_channels, 5);
	record_set_int(ret_record, g->nvls_head_count, 5);
	for (uint32_t a = 0; a < RECORD_ARRAYS; a++) {
		for (uint32_t i = 0; i < g->n_channels_max; i++) {
			struct record_field f = {(uint16_t)(g->arrays_at +
							    (a * g->n_channels_max + i) * 4),
						 4};

			record_set_int(ret_record, f,
				       i >= 5             ? 0
				       : (a + i) % 4 == 3 ? -1
							  : (int32_t)mates[(a + i) % n]);
		}
	}
}

#define DOORS_MAX 16 /* more communicators of one magic than any test has at once */

static void expect(struct player *p, const char *what, uint32_t to, uint32_t rank,
		   const uint8_t *got, const uint8_t *want, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (got[i] != want[i])
			player_fail(p, "%s of rank %u at rank %u: byte %u is %#x, not %#x", what,
				    rank, to, i, got[i], want[i]);
	}
}

void world_check_contacts(struct player *p, const struct world *w, const struct rank_comm *c,
			  const uint8_t *all, bool is_shared)
{
	uint32_t end = c->records->contacts[0].bytes - 1u;
	uint8_t want[NCCL_ADDRESS_BYTES];
	unsigned door = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t ahead = (i + 1) % w->n, r = (c->rank + ahead) % w->n, k = 0;
		const uint8_t *got = c->addresses + (size_t)r * NCCL_ADDRESS_BYTES;
		unsigned port;

		while (k < w->n_real && w->real[k] != r)
			k++;
		port = k < w->n_real ? PORT_REAL + k : ahead <= w->n / 2 ? PORT_NEAR : PORT_FAR;
		/* at the first, any door of a few is right; the others have the same */
		do
			play_port(door * PORT_DOOR + port, want);
		while (i == 0 && memcmp(got, want, sizeof(want)) != 0 && ++door < DOORS_MAX);
		expect(p, "contact", c->rank, r, got, r == c->rank ? c->peer_address : want,
		       NCCL_ADDRESS_BYTES);
	}
	if (c->records->n_contacts == 1 &&
	    all[end] != (is_shared ? 0 : (uint8_t)(0x80 | w->template[0])))
		player_fail(p, "the end of rank 0's contact is %#x", all[end]);
}

void world_init(struct rank_comm *c, const struct world *w, uint64_t seed)
{
	const struct nccl_records *t = c->records;
	uint32_t peer = t->peer.bytes, graph = t->graph.bytes;
	uint8_t *peers = play_alloc(c->p->play, (size_t)w->n * peer),
		*graphs = play_alloc(c->p->play, (size_t)w->n * graph);
	uint8_t want[4096];
	struct rewrite_places places = {.n_ranks = w->n, .node = w->node, .template = w->template};
	char text[256];

	world_peer(t, w, c->rank, seed, peers + (size_t)c->rank * peer);
	rank_gather(c, peers, peer);
	world_graph(t, w, c->rank, seed, graphs + (size_t)c->rank * graph);
	rank_gather(c, graphs, graph);
	if (rewrite_places_init(&places, text, sizeof(text)) < 0)
		player_fail(c->p, "%s", text);
	for (uint32_t r = 0; r < w->n; r++) {
		world_peer(t, w, w->template[r], seed, want);
		rewrite_peer(&t->peer, &places, r, want);
		if (memcmp(want, peers + (size_t)r * peer, peer) != 0)
			break;
		world_graph(t, w, w->template[r], seed, want);
		if (rewrite_graph(&t->graph, &places, r, want) < 0 ||
		    memcmp(want, graphs + (size_t)r * graph, graph) != 0)
			break;
		if (r == w->n - 1)
			r++;
		if (r == w->n) {
			rewrite_places_deinit(&places);
			return;
		}
	}
	rewrite_places_deinit(&places);
	player_fail(c->p, "a record at rank %u is not what it must be", c->rank);
}

void world_copied(struct rank_comm *c, const struct world *w, uint32_t bytes, uint8_t salt)
{
	uint8_t *all = play_alloc(c->p->play, (size_t)w->n * bytes);
	const struct record_later *later = nccl_records_later(c->records, bytes);

	if (!later || later->refused)
		return;
	memset(all + (size_t)c->rank * bytes, (int)(uint8_t)(c->rank * 7 + salt), bytes);
	rank_gather(c, all, bytes);
	for (uint32_t r = 0; r < w->n; r++) {
		for (uint32_t i = 0; i < bytes; i++) {
			if (all[(size_t)r * bytes + i] != (uint8_t)(w->template[r] * 7 + salt))
				player_fail(c->p, "byte %u of rank %u's copied record at rank %u",
					    i, r, c->rank);
		}
	}
}
