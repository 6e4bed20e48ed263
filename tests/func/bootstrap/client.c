/* See client.h. */
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

#define RECORD_MAX 4096
#define NODE_GATHER_BYTES 100000 /* NCCL's is larger: a description of the node */

/* --- life -------------------------------------------------------------------------- */

void client_new(struct client *c, const struct said_world *w, uint32_t rank,
		const uint8_t at[NCCL_ADDRESS_BYTES], uint64_t until_ns)
{
	*c = (struct client){.w = w,
			     .rank = rank,
			     .until_ns = until_ns,
			     .ring_listen = -1,
			     .peer_listen = -1,
			     .root_listen = -1,
			     .next = -1,
			     .prev = -1};
	memcpy(c->at, at, sizeof(c->at));
}

void client_free(struct client *c)
{
	while (c->parked) {
		struct client_parked *p = c->parked;

		c->parked = p->next;
		wire_close(&p->fd);
		free(p);
	}
	wire_close(&c->next);
	wire_close(&c->prev);
	if (c->peer_listen == c->ring_listen)
		c->peer_listen = -1;
	wire_close(&c->ring_listen);
	wire_close(&c->peer_listen);
	wire_close(&c->root_listen);
	free(c->peers);
	c->peers = NULL;
}

int client_destroy(struct client *c)
{
	const struct client_parked *p = c->parked;
	int r = !p ? 0
		   : wire_fail("rank %u: a message of rank %d with tag %#x came that nobody wanted",
			       c->rank, p->rank, (unsigned)p->tag);

	client_free(c);
	return r;
}

static int listen_for_ring(struct client *c)
{
	c->ring_listen = wire_listen(c->at, c->ring_address);
	return c->ring_listen < 0 ? -1 : 0;
}

static int listen_for_peers(struct client *c)
{
	if (client_is_old(c)) {
		c->peer_listen = c->ring_listen;
		memcpy(c->peer_address, c->ring_address, sizeof(c->peer_address));
		return 0;
	}
	c->peer_listen = wire_listen(c->at, c->peer_address);
	return c->peer_listen < 0 ? -1 : 0;
}

/* --- the root ---------------------------------------------------------------------- */

/* Ranks go to roots in equal parts; the first ones have one more. */
static uint32_t first_of_root(uint32_t n_ranks, uint32_t n_roots, uint32_t root)
{
	uint32_t more = n_ranks % n_roots;

	return root * (n_ranks / n_roots) + (root < more ? root : more);
}

static uint32_t root_of(uint32_t n_ranks, uint32_t n_roots, uint32_t rank)
{
	uint32_t root = 0;

	while (root + 1 < n_roots && first_of_root(n_ranks, n_roots, root + 1) <= rank)
		root++;
	return root;
}

static void set_int(uint8_t *record, struct record_field f, uint32_t value)
{
	if (f.bytes)
		memcpy(record + f.at, &value, sizeof(value));
}

static uint64_t magic_of(const struct client *c, const uint8_t *id)
{
	uint64_t magic;

	memcpy(&magic, id + c->w->records->id_magic.at, sizeof(magic));
	return magic;
}

static int say_to_root(struct client *c, const uint8_t *ids, uint32_t n_ids, uint32_t root,
		       uint32_t rank, const uint8_t *root_address)
{
	const struct record_check_in *ci = &c->w->records->check_in;
	const uint8_t *id = ids + (size_t)root * NCCL_ID_BYTES;
	uint8_t record[RECORD_MAX] = {0};
	int fd, r;

	set_int(record, ci->rank, rank);
	set_int(record, ci->n_ranks, c->w->n_ranks);
	set_int(record, ci->root, root);
	set_int(record, ci->n_roots, n_ids);
	memcpy(record + ci->root_address.at, root_address, NCCL_ADDRESS_BYTES);
	memcpy(record + ci->ring_address.at, c->ring_address, NCCL_ADDRESS_BYTES);
	fd = wire_connect(id + c->w->records->id_address.at, magic_of(c, id), c->until_ns);
	if (fd < 0)
		return -1;
	r = wire_send_message(fd, record, ci->bytes, c->until_ns);
	wire_close(&fd);
	return r;
}

int client_check_in(struct client *c, const uint8_t *ids, uint32_t n_ids)
{
	uint32_t n = c->w->n_ranks, root = root_of(n, n_ids, c->rank),
		 before = (c->rank + n - 1) % n;
	uint8_t root_address[NCCL_ADDRESS_BYTES];

	c->magic = magic_of(c, ids);
	c->root_magic = magic_of(c, ids + (size_t)root * NCCL_ID_BYTES);
	if (listen_for_ring(c) < 0)
		return -1;
	c->root_listen = wire_listen(c->at, root_address);
	if (c->root_listen < 0 || say_to_root(c, ids, n_ids, root, c->rank, root_address) < 0)
		return -1;
	if (n_ids == 1 || first_of_root(n, n_ids, root) != c->rank)
		return 0;
	/* the root before knows of it as of the rank behind its last */
	return say_to_root(c, ids, n_ids, root_of(n, n_ids, before), before + 1, root_address);
}

/* --- the ring ---------------------------------------------------------------------- */

int client_ring(struct client *c, const uint8_t next[NCCL_ADDRESS_BYTES])
{
	c->next = wire_connect(next, c->magic, c->until_ns);
	if (c->next < 0)
		return -1;
	c->prev = wire_accept(c->ring_listen, c->magic, c->until_ns);
	return c->prev < 0 ? -1 : 0;
}

int client_answer(struct client *c, uint8_t ret_next[NCCL_ADDRESS_BYTES])
{
	uint8_t next[NCCL_ID_BYTES];
	int fd = wire_accept(c->root_listen, c->root_magic, c->until_ns), r;

	if (fd < 0)
		return -1;
	r = wire_recv_message(fd, next, c->w->records->next_bytes, c->until_ns);
	wire_close(&fd);
	wire_close(&c->root_listen);
	if (r == 0)
		memcpy(ret_next, next, NCCL_ADDRESS_BYTES);
	return r;
}

/* Sizes both ways before any data: who waits for data first waits for ever. */
static int swap(struct client *c, const int fds[2], uint8_t *out, uint8_t *in, int32_t n)
{
	int32_t said = n, heard = -1;
	struct wire_op sizes[2] = {{fds[0], true, (uint8_t *)&said, sizeof(said), 0},
				   {fds[1], false, (uint8_t *)&heard, sizeof(heard), 0}};
	struct wire_op data[2] = {{fds[0], true, out, (size_t)n, 0},
				  {fds[1], false, in, (size_t)n, 0}};

	if (wire_exchange(sizes, 2, c->until_ns) < 0)
		return -1;
	if (heard != n)
		return wire_fail("rank %u: a record of %d bytes instead of %d", c->rank, heard, n);
	return wire_exchange(data, 2, c->until_ns);
}

/* The same both ways round: both pairs of sizes, then all data at once. */
static int swap_both(struct client *c, int next, int prev, uint8_t *const out[2],
		     uint8_t *const in[2], int32_t n)
{
	size_t bytes = (size_t)n;
	int32_t said = n, heard[2] = {-1, -1};
	struct wire_op a[2] = {{next, true, (uint8_t *)&said, sizeof(said), 0},
			       {prev, false, (uint8_t *)&heard[0], sizeof(said), 0}},
		       b[2] = {{prev, true, (uint8_t *)&said, sizeof(said), 0},
			       {next, false, (uint8_t *)&heard[1], sizeof(said), 0}},
		       data[4] = {{next, true, out[0], bytes, 0},
				  {prev, false, in[0], bytes, 0},
				  {prev, true, out[1], bytes, 0},
				  {next, false, in[1], bytes, 0}};

	if (wire_exchange(a, 2, c->until_ns) < 0 || wire_exchange(b, 2, c->until_ns) < 0)
		return -1;
	if (heard[0] != n || heard[1] != n)
		return wire_fail("rank %u: records of %d and %d bytes instead of %d", c->rank,
				 heard[0], heard[1], n);
	return wire_exchange(data, 4, c->until_ns);
}

/* Where the record of a rank stands; of a client that keeps nothing, one of two places. */
struct slices {
	uint8_t *all;
	uint32_t n;
	int32_t bytes;
	bool is_all;
};

static uint8_t *slice(const struct slices *s, uint32_t i, unsigned step)
{
	return s->all + (size_t)(s->is_all ? i % s->n : step % 2) * (size_t)s->bytes;
}

static void hold(const struct client *c, uint32_t step)
{
	while (step == 1 && c->held_until && !*c->held_until)
		usleep(1000);
}

static int round_one_way(struct client *c, const int fds[2], uint32_t rank, const struct slices *s)
{
	for (uint32_t i = 0; i + 1 < s->n; i++) {
		hold(c, i);
		if (swap(c, fds, slice(s, rank + s->n - i, i), slice(s, rank + s->n - i - 1, i + 1),
			 s->bytes) < 0)
			return -1;
	}
	return 0;
}

static int round_both_ways(struct client *c, int next, int prev, uint32_t rank,
			   const struct slices *s)
{
	struct slices other = *s; /* the way round against the ring */

	if (!s->is_all)
		other.all += 2 * (size_t)s->bytes;
	for (uint32_t i = 0; i < s->n / 2; i++) {
		uint8_t *out[2] = {slice(s, rank + s->n - i, i), slice(&other, rank + i, i)},
			*in[2] = {slice(s, rank + s->n - i - 1, i + 1),
				  slice(&other, rank + i + 1, i + 1)};
		bool is_last = s->n % 2 == 0 && i == s->n / 2 - 1;
		int r;

		hold(c, i);
		r = is_last ? swap(c, (int[2]){next, prev}, out[0], in[0], s->bytes)
			    : swap_both(c, next, prev, out, in, s->bytes);

		if (r < 0)
			return -1;
	}
	return 0;
}

/* @rank: of @s->n, in this ring. */
static int go_round(struct client *c, int next, int prev, uint32_t rank, const struct slices *s)
{
	return c->w->records->is_both_ways ? round_both_ways(c, next, prev, rank, s)
					   : round_one_way(c, (int[2]){next, prev}, rank, s);
}

int client_all_gather(struct client *c, const uint8_t *own, size_t bytes, uint8_t **ret_all)
{
	bool is_all = !c->keeps_nothing;
	struct slices s = {calloc(is_all ? c->w->n_ranks : 4, bytes), c->w->n_ranks, (int32_t)bytes,
			   is_all};
	int r;

	if (!s.all)
		return wire_fail("no memory");
	for (unsigned i = 0; i < (is_all ? 1u : 4u); i++)
		memcpy(s.all + (is_all ? c->rank : i) * bytes, own, bytes);
	r = go_round(c, c->next, c->prev, c->rank, &s);
	if (r < 0 || !is_all) {
		free(s.all);
		s.all = NULL;
	}
	*ret_all = s.all;
	return r;
}

/* --- an init ----------------------------------------------------------------------- */

static int gather_contacts(struct client *c, const struct record_contact *rc)
{
	uint8_t own[RECORD_MAX], *all;
	int r;

	said_bytes(c->w, c->rank, rc->bytes, own);
	if (rc->peer_address.bytes)
		memcpy(own + rc->peer_address.at, c->peer_address, NCCL_ADDRESS_BYTES);
	if (client_all_gather(c, own, rc->bytes, &all) < 0)
		return -1;
	if (!all)
		return 0;
	r = said_check_contacts(c->w, c->rank, own, rc, all);
	for (uint32_t i = 0; rc->peer_address.bytes && i < c->w->n_ranks; i++)
		memcpy(c->peers + (size_t)i * NCCL_ADDRESS_BYTES,
		       all + (size_t)i * rc->bytes + rc->peer_address.at, NCCL_ADDRESS_BYTES);
	free(all);
	return r;
}

static int contacts(struct client *c, unsigned n)
{
	if (!c->peers)
		c->peers = calloc(c->w->n_ranks, NCCL_ADDRESS_BYTES);
	if (!c->peers)
		return wire_fail("no memory");
	if (c->peer_listen < 0 && listen_for_peers(c) < 0)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (gather_contacts(c, &c->w->records->contacts[i]) < 0)
			return -1;
	return 0;
}

int client_contacts(struct client *c)
{
	return contacts(c, c->w->records->n_contacts);
}

static int gather(struct client *c, const uint8_t *own, size_t bytes,
		  int (*check)(const struct said_world *w, const uint8_t *all))
{
	uint8_t *all;
	int r = client_all_gather(c, own, bytes, &all);

	if (r == 0 && all)
		r = check(c->w, all);
	if (r == 0)
		free(all);
	return r;
}

int client_peers(struct client *c)
{
	uint8_t own[RECORD_MAX];

	said_peer(c->w, c->rank, own);
	return gather(c, own, c->w->records->peer.bytes, said_check_peers);
}

int client_graph(struct client *c)
{
	uint8_t own[RECORD_MAX];

	said_graph(c->w, c->rank, own);
	return gather(c, own, c->w->records->graph.bytes, said_check_graphs);
}

int client_gather(struct client *c, size_t bytes)
{
	uint8_t own[RECORD_MAX], *all;
	int r;

	said_bytes(c->w, c->rank, bytes, own);
	r = client_all_gather(c, own, bytes, &all);
	if (r == 0 && all)
		r = said_check_bytes(c->w, bytes, all);
	if (r == 0)
		free(all);
	return r;
}

static int check_node_gather(const struct client *c, const uint8_t *all)
{
	for (uint32_t i = 0; i < c->w->count[c->rank]; i++)
		for (size_t b = 0; b < NODE_GATHER_BYTES; b++)
			if (all[i * NODE_GATHER_BYTES + b] != (uint8_t)(i * 31 + b))
				return wire_fail(
					"rank %u: byte %zu of what local rank %u says is wrong",
					c->rank, b, i);
	return 0;
}

int client_node(struct client *c)
{
	uint32_t n = c->w->count[c->rank], i = 0;
	const uint32_t *ranks = c->w->by_node + c->w->first[c->rank];
	int32_t tag = client_is_old(c) ? 0 : 1 << 28;
	struct slices s = {NULL, n, NODE_GATHER_BYTES, true};
	int next = -1, prev = -1, r = -1;

	if (n == 1)
		return 0;
	s.all = calloc(n, NODE_GATHER_BYTES);
	if (!s.all)
		return wire_fail("no memory");
	while (ranks[i] != c->rank)
		i++;
	for (size_t b = 0; b < NODE_GATHER_BYTES; b++)
		s.all[i * NODE_GATHER_BYTES + b] = (uint8_t)(i * 31 + b);
	next = client_open(c, ranks[(i + 1) % n], tag);
	if (next >= 0)
		prev = client_accept(c, ranks[(i + n - 1) % n], tag);
	if (prev >= 0)
		r = go_round(c, next, prev, i, &s);
	if (r == 0)
		r = check_node_gather(c, s.all);
	wire_close(&next);
	wire_close(&prev);
	free(s.all);
	return r;
}

int client_init(struct client *c, const uint8_t *ids, uint32_t n_ids)
{
	uint8_t next[NCCL_ADDRESS_BYTES];

	if (client_check_in(c, ids, n_ids) < 0 || client_answer(c, next) < 0 ||
	    client_ring(c, next) < 0 || client_contacts(c) < 0 || client_peers(c) < 0 ||
	    client_node(c) < 0)
		return -1;
	return client_graph(c);
}

/* --- children ---------------------------------------------------------------------- */

static int check_votes(const struct client *c, const uint8_t *all, size_t bytes, size_t at,
		       const int32_t *wanted, const char *what)
{
	for (uint32_t r = 0; r < c->w->n_ranks; r++) {
		int32_t got;

		memcpy(&got, all + r * bytes + at, sizeof(got));
		if (got != wanted[r])
			return wire_fail("rank %u: rank %u has %s %d, not %d", c->rank, r, what,
					 got, wanted[r]);
	}
	return 0;
}

static int vote(struct client *c, const uint8_t *own, size_t bytes, const int32_t *color,
		size_t color_at, const int32_t *key, size_t key_at)
{
	uint8_t *all;
	int r = client_all_gather(c, own, bytes, &all);

	if (r < 0)
		return -1;
	if (all && color)
		r = check_votes(c, all, bytes, color_at, color, "color");
	if (all && key && r == 0)
		r = check_votes(c, all, bytes, key_at, key, "key");
	free(all);
	return r;
}

int client_vote(struct client *parent, const int32_t *color, const int32_t *key)
{
	const struct record_split *s = &parent->w->records->split;
	uint8_t own[RECORD_MAX] = {0};

	if (s->n_gathers == 1) {
		set_int(own, s->color, (uint32_t)color[parent->rank]);
		set_int(own, s->key, (uint32_t)key[parent->rank]);
		return vote(parent, own, s->bytes, color, s->color.at, key, s->key.at);
	}
	memcpy(own, &color[parent->rank], sizeof(int32_t));
	if (vote(parent, own, sizeof(int32_t), color, 0, NULL, 0) < 0)
		return -1;
	memcpy(own, &key[parent->rank], sizeof(int32_t));
	return vote(parent, own, sizeof(int32_t), NULL, 0, key, 0);
}

int client_join(struct client *parent, struct client *child, const uint32_t *parent_ranks,
		uint64_t magic, bool is_shared)
{
	const struct nccl_records *records = child->w->records;
	uint32_t n = child->w->n_ranks;
	uint8_t ring[NCCL_ID_BYTES] = {0}, next[NCCL_ID_BYTES];

	child->magic = magic;
	if (listen_for_ring(child) < 0 || listen_for_peers(child) < 0)
		return -1;
	memcpy(ring, child->ring_address, NCCL_ADDRESS_BYTES);
	if (client_send(parent, parent_ranks[(child->rank + n - 1) % n], records->split.tag, ring,
			records->next_bytes) < 0 ||
	    client_recv(parent, parent_ranks[(child->rank + 1) % n], records->split.tag, next,
			records->next_bytes) < 0 ||
	    client_ring(child, next) < 0)
		return -1;
	if (contacts(child, is_shared ? 1 : records->n_contacts) < 0 || client_peers(child) < 0 ||
	    client_node(child) < 0)
		return -1;
	return client_graph(child);
}
