#include "rank.h"

#include <stdlib.h>
#include <string.h>

/* --- tables ------------------------------------------------------------------------ */

const struct nccl_records *table_new(void)
{
	char sentence[256];

	return nccl_records_find(NCCL_CODE(2, 28, 9), true, sentence, sizeof(sentence));
}

const struct nccl_records *table_old(void)
{
	static struct nccl_records old;

	old = *table_new();
	old.name = "old";
	old.is_both_ways = false;
	old.has_two_heads = true;
	old.next_bytes = 28;
	old.connect_bytes = 128;
	old.use_gdr = (struct record_field){0, 0};
	old.check_in = (struct record_check_in){.bytes = 64,
						.rank = {0, 4},
						.n_ranks = {4, 4},
						.root_address = {8, 28},
						.ring_address = {36, 28}};
	old.n_contacts = 3;
	old.contacts[0] = (struct record_contact){28, {0, 28}};
	old.contacts[1] = (struct record_contact){28, {0, 0}};
	old.contacts[2] = (struct record_contact){8, {0, 0}};
	old.split = (struct record_split){
		.n_gathers = 2, .bytes = 4, .color = {0, 4}, .key = {0, 4}, .tag = -2};
	return &old;
}

/* --- frames ------------------------------------------------------------------------ */

static void hello_send(struct player *p, struct wire *w, uint64_t magic)
{
	int32_t type = 1;

	player_send(p, w, &magic, sizeof(magic));
	player_send(p, w, &type, sizeof(type));
}

static struct wire *accept_hello(struct player *p, struct listener *l, uint64_t magic)
{
	struct wire *w = player_accept(p, l);
	uint64_t got;
	int32_t type;

	player_recv(p, w, &got, sizeof(got));
	player_recv(p, w, &type, sizeof(type));
	if (got != magic || type != 1)
		player_fail(p, "accepted magic %llx type %d", (unsigned long long)got, type);
	return w;
}

static void frame_send(struct player *p, struct wire *w, const void *bytes, int32_t n)
{
	player_send(p, w, &n, sizeof(n));
	player_send(p, w, bytes, (size_t)n);
}

static void frame_recv(struct player *p, struct wire *w, void *bytes, int32_t n)
{
	int32_t size;

	player_recv(p, w, &size, sizeof(size));
	if (size != n)
		player_fail(p, "a frame of %d bytes, not %d", size, n);
	player_recv(p, w, bytes, (size_t)n);
}

/* --- the root and the ring --------------------------------------------------------- */

static void check_in(struct rank_comm *c, const uint8_t *id, uint32_t rank, uint32_t root,
		     uint32_t n_ids, const uint8_t *root_address)
{
	const struct record_check_in *f = &c->records->check_in;
	uint8_t *record = play_alloc(c->p->play, f->bytes);
	struct wire *w;
	uint64_t magic;

	record_set_int(record, f->rank, (int32_t)rank);
	record_set_int(record, f->n_ranks, (int32_t)c->n);
	if (f->root.bytes) {
		record_set_int(record, f->root, (int32_t)root);
		record_set_int(record, f->n_roots, (int32_t)n_ids);
	}
	memcpy(record + f->root_address.at, root_address, NCCL_ADDRESS_BYTES);
	memcpy(record + f->ring_address.at, c->ring_address, NCCL_ADDRESS_BYTES);
	memcpy(&magic, id, sizeof(magic));
	w = player_connect(c->p, id + 8);
	hello_send(c->p, w, magic);
	frame_send(c->p, w, record, f->bytes);
	player_close(c->p, w);
}

static void ring_connect(struct rank_comm *c, const uint8_t *next_address)
{
	c->next = player_connect(c->p, next_address);
	hello_send(c->p, c->next, c->magic);
	c->prev = accept_hello(c->p, c->ring, c->magic);
}

static struct rank_comm *comm_new(struct player *p, const struct nccl_records *records,
				  uint32_t rank, uint32_t n, uint64_t magic)
{
	struct rank_comm *c = play_alloc(p->play, sizeof(*c));

	c->p = p;
	c->records = records;
	c->rank = rank;
	c->n = n;
	c->magic = magic;
	c->addresses = play_alloc(p->play, (size_t)n * NCCL_ADDRESS_BYTES);
	c->ring = player_listen(p, c->ring_address);
	if (records->n_contacts > 1) {
		c->peers = c->ring;
		memcpy(c->peer_address, c->ring_address, NCCL_ADDRESS_BYTES);
	} else {
		c->peers = player_listen(p, c->peer_address);
	}
	return c;
}

/* Which ranks a root has, one after the other, as evenly as may be. */
static uint32_t root_of(uint32_t rank, uint32_t n, uint32_t n_ids, bool *ret_is_first)
{
	for (uint32_t root = 0, first = 0;; root++) {
		uint32_t here = n / n_ids + (root < n % n_ids);

		if (rank < first + here) {
			*ret_is_first = rank == first;
			return root;
		}
		first += here;
	}
}

struct rank_comm *rank_init(struct player *p, const struct nccl_records *records, uint32_t rank,
			    uint32_t n, const uint8_t *ids, uint32_t n_ids)
{
	uint8_t address[NCCL_ADDRESS_BYTES], *next = play_alloc(p->play, records->next_bytes);
	bool is_first, ignored;
	uint32_t root = root_of(rank, n, n_ids, &is_first), before;
	struct listener *l = player_listen(p, address);
	struct rank_comm *c;
	uint64_t magic;
	struct wire *w;

	memcpy(&magic, ids, sizeof(magic));
	c = comm_new(p, records, rank, n, magic);
	check_in(c, ids + (size_t)root * NCCL_ID_BYTES, rank, root, n_ids, address);
	if (n_ids > 1 && is_first) {
		before = (rank + n - 1) % n;
		root = root_of(before, n, n_ids, &ignored);
		check_in(c, ids + (size_t)root * NCCL_ID_BYTES, before + 1, root, n_ids, address);
		root = root_of(rank, n, n_ids, &is_first);
	}
	memcpy(&magic, ids + (size_t)root * NCCL_ID_BYTES, sizeof(magic));
	w = accept_hello(p, l, magic);
	frame_recv(p, w, next, records->next_bytes);
	player_close(p, w);
	player_close_listener(p, l);
	ring_connect(c, next);
	return c;
}

/* --- all-gathers ------------------------------------------------------------------- */

struct part {
	struct wire *wire;
	uint8_t *bytes;
	size_t n, at;
	bool is_send;
};

/* All at the same time. */
static void parts_move(struct player *p, struct part *parts, int n)
{
	bool is_done;

	for (;;) {
		is_done = true;
		for (int i = 0; i < n; i++) {
			struct part *x = &parts[i];
			long k = x->at == x->n ? 0
				 : x->is_send  ? player_try_send(p, x->wire, x->bytes + x->at,
								 x->n - x->at)
					       : player_try_recv(p, x->wire, x->bytes + x->at,
								 x->n - x->at);

			if (k < 0)
				player_fail(p, "a ring's connection is closed");
			x->at += (size_t)k;
			is_done &= x->at == x->n;
		}
		if (is_done)
			return;
		player_wait(p);
	}
}

static void sizes_move(struct player *p, struct wire *to, struct wire *from, int32_t size)
{
	int32_t got = -1;
	struct part parts[] = {{to, (uint8_t *)&size, 4, 0, true},
			       {from, (uint8_t *)&got, 4, 0, false}};

	parts_move(p, parts, 2);
	if (got != size)
		player_fail(p, "the size %d came in an all-gather of %d", got, size);
}

static void ring_gather(struct player *p, bool is_both_ways, struct wire *next, struct wire *prev,
			uint32_t rank, uint32_t n, uint8_t *all, uint32_t bytes)
{
	uint32_t steps = is_both_ways ? n / 2 : n - 1;

#define SLICE(r) (all + (size_t)(((r) + 2 * n) % n) * bytes)
	for (uint32_t s = 0; s < steps; s++) {
		bool is_one = !is_both_ways || (s == steps - 1 && n % 2 == 0);
		struct part parts[] = {{next, SLICE(rank - s), bytes, 0, true},
				       {prev, SLICE(rank - s - 1), bytes, 0, false},
				       {prev, SLICE(rank + s), bytes, 0, true},
				       {next, SLICE(rank + s + 1), bytes, 0, false}};

		sizes_move(p, next, prev, (int32_t)bytes);
		if (!is_one)
			sizes_move(p, prev, next, (int32_t)bytes);
		parts_move(p, parts, is_one ? 2 : 4);
	}
#undef SLICE
}

void rank_gather(struct rank_comm *c, uint8_t *all, uint32_t bytes)
{
	ring_gather(c->p, c->records->is_both_ways, c->next, c->prev, c->rank, c->n, all, bytes);
}

uint8_t *rank_contacts(struct rank_comm *c, bool is_shared)
{
	uint8_t *first = NULL;

	for (uint32_t i = 0; i < (is_shared ? 1 : c->records->n_contacts); i++) {
		const struct record_contact *f = &c->records->contacts[i];
		uint8_t *all = play_alloc(c->p->play, (size_t)c->n * f->bytes),
			*own = all + (size_t)c->rank * f->bytes;

		for (uint32_t k = 0; k < f->bytes && !is_shared; k++)
			own[k] = (uint8_t)(0x80 | c->rank);
		if (f->peer_address.bytes)
			memcpy(own + f->peer_address.at, c->peer_address, NCCL_ADDRESS_BYTES);
		rank_gather(c, all, f->bytes);
		if (i > 0)
			continue;
		first = all;
		for (uint32_t r = 0; r < c->n; r++)
			memcpy(c->addresses + (size_t)r * NCCL_ADDRESS_BYTES,
			       all + (size_t)r * f->bytes + f->peer_address.at, NCCL_ADDRESS_BYTES);
	}
	return first;
}

/* --- messages ---------------------------------------------------------------------- */

static struct wire *message_connect(struct rank_comm *c, uint32_t to, int32_t tag)
{
	struct wire *w = player_connect(c->p, c->addresses + (size_t)to * NCCL_ADDRESS_BYTES);
	int32_t head[2] = {(int32_t)c->rank, tag};

	hello_send(c->p, w, c->magic);
	if (c->records->has_two_heads) {
		frame_send(c->p, w, &head[0], 4);
		frame_send(c->p, w, &head[1], 4);
	} else {
		frame_send(c->p, w, head, 8);
	}
	return w;
}

void rank_send(struct rank_comm *c, uint32_t to, int32_t tag, const void *bytes, int32_t n)
{
	struct wire *w = message_connect(c, to, tag);

	frame_send(c->p, w, bytes, n);
	player_close(c->p, w);
}

static struct wire *message_accept(struct rank_comm *c, uint32_t from, int32_t tag)
{
	int32_t head[2];

	for (struct parked **at = &c->parked; *at; at = &(*at)->next) {
		struct wire *w = (*at)->wire;

		if ((*at)->rank != (int32_t)from || (*at)->tag != tag)
			continue;
		*at = (*at)->next;
		return w;
	}
	for (;;) {
		struct wire *w = accept_hello(c->p, c->peers, c->magic);
		struct parked *other = play_alloc(c->p->play, sizeof(*other));

		if (c->records->has_two_heads) {
			frame_recv(c->p, w, &head[0], 4);
			frame_recv(c->p, w, &head[1], 4);
		} else {
			frame_recv(c->p, w, head, 8);
		}
		if (head[0] == (int32_t)from && head[1] == tag)
			return w;
		*other = (struct parked){head[0], head[1], w, c->parked};
		c->parked = other;
	}
}

void rank_recv(struct rank_comm *c, uint32_t from, int32_t tag, void *bytes, int32_t n)
{
	struct wire *w = message_accept(c, from, tag);

	frame_recv(c->p, w, bytes, n);
	if (!player_is_at_end(c->p, w))
		player_fail(c->p, "a message of rank %u is longer", from);
	player_close(c->p, w);
}

void rank_barrier(struct rank_comm *c, int32_t tag)
{
	int32_t zero = 0;

	for (uint32_t mask = 1; mask < c->n; mask <<= 1) {
		rank_send(c, (c->rank + mask) % c->n, tag, &zero, 4);
		rank_recv(c, (c->rank + c->n - mask) % c->n, tag, &zero, 4);
	}
}

void rank_local_gather(struct rank_comm *c, const uint32_t *ranks, uint32_t n, uint8_t *all,
		       uint32_t bytes)
{
	struct wire *next, *prev;
	uint32_t self = 0;

	while (ranks[self] != c->rank)
		self++;
	next = message_connect(c, ranks[(self + 1) % n], 1 << 28);
	prev = message_accept(c, ranks[(self + n - 1) % n], 1 << 28);
	ring_gather(c->p, c->records->is_both_ways, next, prev, self, n, all, bytes);
	player_close(c->p, next);
	player_close(c->p, prev);
}

struct rank_comm *rank_split(struct rank_comm *c, uint64_t magic, const uint32_t *ranks, uint32_t n)
{
	uint8_t *own = play_alloc(c->p->play, c->records->next_bytes),
		*next = play_alloc(c->p->play, c->records->next_bytes);
	struct rank_comm *child;
	uint32_t self = 0;

	while (ranks[self] != c->rank)
		self++;
	child = comm_new(c->p, c->records, self, n, magic);
	memcpy(own, child->ring_address, NCCL_ADDRESS_BYTES);
	rank_send(c, ranks[(self + n - 1) % n], c->records->split.tag, own, c->records->next_bytes);
	rank_recv(c, ranks[(self + 1) % n], c->records->split.tag, next, c->records->next_bytes);
	ring_connect(child, next);
	return child;
}

void rank_close(struct rank_comm *c)
{
	if (c->parked || c->peers->waiting)
		player_fail(c->p, "messages are left that nobody has asked for");
	player_close(c->p, c->next);
	player_close(c->p, c->prev);
	player_close_listener(c->p, c->ring);
	player_close_listener(c->p, c->peers);
}
