/* See said.h. */
#include "said.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire.h"

#define RECORD_MAX 4096

/* --- places ------------------------------------------------------------------------ */

int said_world_init(struct said_world *w)
{
	uint32_t n = 0, n_nodes = 0;

	w->by_node = calloc(w->n_ranks, sizeof(*w->by_node));
	w->first = calloc(w->n_ranks, sizeof(*w->first));
	w->count = calloc(w->n_ranks, sizeof(*w->count));
	if (!w->by_node || !w->first || !w->count)
		return wire_fail("no memory");
	for (uint32_t r = 0; r < w->n_ranks; r++)
		if (w->node[r] >= n_nodes)
			n_nodes = w->node[r] + 1;
	/* two passes of a counting sort */
	uint32_t *start = calloc(n_nodes + 1, sizeof(*start)), *at = calloc(n_nodes, sizeof(*at));

	if (!start || !at) {
		free(start);
		free(at);
		return wire_fail("no memory");
	}
	for (uint32_t r = 0; r < w->n_ranks; r++)
		start[w->node[r] + 1]++;
	for (uint32_t i = 0; i < n_nodes; i++)
		start[i + 1] += start[i];
	for (uint32_t r = 0; r < w->n_ranks; r++, n++) {
		uint32_t node = w->node[r];

		w->by_node[start[node] + at[node]++] = r;
		w->first[r] = start[node];
		w->count[r] = start[node + 1] - start[node];
	}
	free(start);
	free(at);
	return 0;
}

void said_world_deinit(struct said_world *w)
{
	free(w->by_node);
	free(w->first);
	free(w->count);
	w->by_node = w->first = w->count = NULL;
}

int32_t said_same_place(const struct said_world *w, uint32_t rank, int32_t of)
{
	for (uint32_t i = 0; i < w->count[rank]; i++) {
		uint32_t there = w->by_node[w->first[rank] + i];

		if (w->template[there] == (uint32_t)of)
			return (int32_t)there;
	}
	return -2;
}

static uint32_t index_on_node(const struct said_world *w, uint32_t rank)
{
	uint32_t i = 0;

	while (w->by_node[w->first[rank] + i] != rank)
		i++;
	return i;
}

/* --- what is said ------------------------------------------------------------------ */

static uint64_t random_of(uint64_t seed, uint64_t what, uint64_t i)
{
	uint64_t z = seed + what * 0x9e3779b97f4a7c15u + i * 0xd1342543de82ef95u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void said_bytes(const struct said_world *w, uint32_t rank, size_t bytes, uint8_t *ret_record)
{
	for (size_t i = 0; i < bytes; i++)
		ret_record[i] = (uint8_t)random_of(w->seed, rank, bytes * 8192 + i);
}

static void set_u64(uint8_t *record, struct record_field f, uint64_t value)
{
	memcpy(record + f.at, &value, f.bytes < sizeof(value) ? f.bytes : sizeof(value));
}

static void set_int(uint8_t *record, size_t at, int32_t value)
{
	memcpy(record + at, &value, sizeof(value));
}

static int32_t get_int(const uint8_t *record, size_t at)
{
	int32_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

void said_peer(const struct said_world *w, uint32_t rank, uint8_t *ret_record)
{
	const struct record_peer *p = &w->records->peer;

	said_bytes(w, rank, p->bytes, ret_record);
	set_int(ret_record, p->rank.at, (int32_t)rank);
	set_u64(ret_record, p->host_hash, random_of(w->seed, 1u << 30, w->node[rank]));
	set_u64(ret_record, p->comm, 0x7f0000000000u + rank * 4096u);
	if (p->version.bytes)
		set_int(ret_record, p->version.at, w->records->first);
}

/* How many of an array's channels are set. */
static int32_t n_set(const struct record_graph *g, unsigned array, const uint8_t *record)
{
	int32_t ring = get_int(record, (size_t)RECORD_OF_RING * g->graph_bytes + g->n_channels.at),
		tree = get_int(record, (size_t)RECORD_OF_TREE * g->graph_bytes + g->n_channels.at);

	if (array == RECORD_NVLS_HEADS)
		return get_int(record, g->nvls_head_count.at);
	return ring < tree ? ring : tree;
}

static size_t array_at(const struct record_graph *g, unsigned array, int32_t channel)
{
	return g->arrays_at + (array * g->n_channels_max + (size_t)channel) * sizeof(int32_t);
}

/* Channel @c's ring begins at local rank @c; its tree is a chain the same way. */
static int32_t in_channel(const struct said_world *w, uint32_t rank, unsigned array, int32_t c)
{
	const uint32_t *ranks = w->by_node + w->first[rank];
	uint32_t n = w->count[rank], first = (uint32_t)c % n,
		 place = (index_on_node(w, rank) + n - first) % n;
	int32_t before = place == 0 ? -1 : (int32_t)ranks[(first + place - 1) % n],
		after = place == n - 1 ? -1 : (int32_t)ranks[(first + place + 1) % n];

	switch ((enum record_array)array) {
	case RECORD_RING_RECV:
		return (int32_t)ranks[first];
	case RECORD_RING_SEND:
		return (int32_t)ranks[(first + n - 1) % n];
	case RECORD_RING_PREV:
	case RECORD_TREE_PARENT:
		return before;
	case RECORD_RING_NEXT:
	case RECORD_TREE_CHILD0:
		return after;
	case RECORD_TREE_CHILD1:
		return -1;
	case RECORD_NVLS_HEADS:
	case RECORD_ARRAYS:
		break;
	}
	return (int32_t)ranks[first];
}

void said_graph(const struct said_world *w, uint32_t rank, uint8_t *ret_record)
{
	const struct record_graph *g = &w->records->graph;

	said_bytes(w, rank, g->bytes, ret_record);
	memset(ret_record + g->arrays_at, 0,
	       (size_t)RECORD_ARRAYS * g->n_channels_max * sizeof(int32_t));
	set_int(ret_record, (size_t)RECORD_OF_RING * g->graph_bytes + g->n_channels.at, 6);
	set_int(ret_record, (size_t)RECORD_OF_TREE * g->graph_bytes + g->n_channels.at, 5);
	if (g->nvls_head_count.bytes)
		set_int(ret_record, g->nvls_head_count.at, (int32_t)w->count[rank]);
	set_int(ret_record, g->local_ranks.at, (int32_t)w->count[rank]);
	for (unsigned a = 0; a < RECORD_ARRAYS; a++)
		for (int32_t c = 0; c < n_set(g, a, ret_record); c++)
			set_int(ret_record, array_at(g, a, c), in_channel(w, rank, a, c));
}

/* --- what is heard ----------------------------------------------------------------- */

static int differ(const char *what, uint32_t rank, const uint8_t *got, const uint8_t *wanted,
		  size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (got[i] != wanted[i])
			return wire_fail("%s of rank %u: byte %zu is %02x, not %02x", what, rank, i,
					 got[i], wanted[i]);
	return 0;
}

static bool is_usable(const uint8_t *address)
{
	struct sockaddr_storage a = {0};
	uint16_t port;

	memcpy(&a, address, NCCL_ADDRESS_BYTES);
	memcpy(&port, address + 2, sizeof(port));
	return (a.ss_family == AF_INET || a.ss_family == AF_INET6) && port;
}

int said_check_contacts(const struct said_world *w, uint32_t rank, const uint8_t *own_record,
			const struct record_contact *c, const uint8_t *all)
{
	for (uint32_t r = 0; r < w->n_ranks; r++)
		if (c->peer_address.bytes &&
		    !is_usable(all + (size_t)r * c->bytes + c->peer_address.at))
			return wire_fail("rank %u cannot reach rank %u: no address", rank, r);
	return differ("the contact", rank, all + (size_t)rank * c->bytes, own_record, c->bytes);
}

static void copy_field(uint8_t *to, const uint8_t *from, struct record_field f)
{
	memcpy(to + f.at, from + f.at, f.bytes);
}

static int check_peer(const struct said_world *w, uint32_t rank, const uint8_t *got)
{
	const struct record_peer *p = &w->records->peer;
	static const uint8_t zeros[RECORD_MAX];
	uint8_t wanted[RECORD_MAX];

	said_peer(w, w->template[rank], wanted);
	if (w->template[rank] != rank) {
		set_int(wanted, p->rank.at, (int32_t)rank);
		set_u64(wanted, p->comm, 0);
		copy_field(wanted, got, p->host_hash); /* said_check_peers() looks at it */
		copy_field(wanted, zeros, p->cluster_uuid);
		copy_field(wanted, got, p->clique);
	}
	return differ("the peer record", rank, got, wanted, p->bytes);
}

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t hash_of(const struct said_world *w, const uint8_t *all, uint32_t rank)
{
	const struct record_peer *p = &w->records->peer;
	uint64_t hash;

	memcpy(&hash, all + (size_t)rank * p->bytes + p->host_hash.at, sizeof(hash));
	return hash;
}

int said_check_peers(const struct said_world *w, const uint8_t *all)
{
	uint64_t *hashes = calloc(w->n_ranks, sizeof(*hashes));
	size_t n_hosts = 0;
	int r = hashes ? 0 : wire_fail("no memory");

	for (uint32_t rank = 0; rank < w->n_ranks && r == 0; rank++) {
		uint32_t first = w->by_node[w->first[rank]];

		r = check_peer(w, rank, all + (size_t)rank * w->records->peer.bytes);
		if (r == 0 && first == rank)
			hashes[n_hosts++] = hash_of(w, all, rank);
		else if (r == 0 && hash_of(w, all, rank) != hash_of(w, all, first))
			r = wire_fail("ranks %u and %u of a node have hosts that differ", first,
				      rank);
	}
	if (r == 0)
		qsort(hashes, n_hosts, sizeof(*hashes), by_hash);
	for (size_t i = 1; i < n_hosts && r == 0; i++)
		if (hashes[i] == hashes[i - 1])
			r = wire_fail("two nodes are one host");
	free(hashes);
	return r;
}

int said_check_graphs(const struct said_world *w, const uint8_t *all)
{
	const struct record_graph *g = &w->records->graph;
	uint8_t wanted[RECORD_MAX] = {0};
	uint32_t of = UINT32_MAX;

	for (uint32_t rank = 0; rank < w->n_ranks; rank++) {
		const uint8_t *got = all + (size_t)rank * g->bytes;
		uint8_t moved[RECORD_MAX];

		if (w->template[rank] != of) {
			of = w->template[rank];
			said_graph(w, of, wanted);
		}
		memcpy(moved, wanted, g->bytes);
		for (unsigned a = 0; a < RECORD_ARRAYS; a++)
			for (int32_t c = 0; c < n_set(g, a, wanted); c++) {
				int32_t there = get_int(wanted, array_at(g, a, c));

				if (there >= 0)
					there = said_same_place(w, rank, there);
				set_int(moved, array_at(g, a, c), there);
			}
		if (differ("the graph", rank, got, moved, g->bytes) < 0)
			return -1;
	}
	return 0;
}

int said_check_bytes(const struct said_world *w, size_t bytes, const uint8_t *all)
{
	uint8_t wanted[RECORD_MAX];

	for (uint32_t rank = 0; rank < w->n_ranks; rank++) {
		said_bytes(w, w->template[rank], bytes, wanted);
		if (differ("the copied record", rank, all + rank * bytes, wanted, bytes) < 0)
			return -1;
	}
	return 0;
}
