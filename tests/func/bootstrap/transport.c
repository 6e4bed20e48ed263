/* See client.h. What ranks tell each other of their connections, before the first op. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "client.h"
#include "wire.h"

/* What a receiver says of a connection: a network's handle. Never like one of nbox's. */
static void say_handle(const struct client *c, uint32_t peer, unsigned i, uint8_t *entry)
{
	memset(entry, 0xa5, 64);
	memcpy(entry + 8, &(uint32_t[3]){c->rank, peer, i}, 12);
}

/* What a sender says: a rank. */
static void say_sender(const struct client *c, uint8_t *entry)
{
	memcpy(entry, &c->rank, sizeof(c->rank));
}

/* Is it what the receiver @peer has to say of connection @i from here? */
static int check_handle(const struct client *c, uint32_t peer, unsigned i, const uint8_t *entry)
{
	struct bootstrap_handle h;
	uint8_t wanted[NCCL_HANDLE_BYTES] = {0};

	if (c->w->template[peer] == peer) {
		struct client there = {.rank = peer};

		say_handle(&there, c->rank, i, wanted);
		return memcmp(entry, wanted, sizeof(wanted)) == 0
			       ? 0
			       : wire_fail("rank %u: handle %u of real rank %u is not its", c->rank,
					   i, peer);
	}
	memcpy(&h, entry, sizeof(h));
	if (memcmp(h.head, BOOTSTRAP_HANDLE_HEAD, sizeof(h.head)) != 0 || h.magic != c->magic ||
	    h.from != c->rank || h.to != peer)
		return wire_fail("rank %u: handle %u of virtual rank %u is not its: from %u to %u",
				 c->rank, i, peer, h.from, h.to);
	return 0;
}

struct round {
	uint32_t from, to; /* peers: it receives from one, sends to the other */
	unsigned n_recv, n_send;
	int32_t tag;
};

static int check_entries(const struct client *c, const struct round *o, const uint8_t *of_receiver)
{
	size_t bytes = c->w->records->connect_bytes;

	for (unsigned i = 0; i < o->n_send; i++)
		if (check_handle(c, o->to, i, of_receiver + i * bytes) < 0)
			return -1;
	return 0;
}

static int one_peer(struct client *c, const struct round *o, uint8_t *data, int32_t bytes)
{
	int32_t n = (int32_t)(o->n_recv + o->n_send) * bytes;

	if (!n)
		return 0;
	if (client_send(c, o->to, o->tag, data, n) < 0 ||
	    client_recv(c, o->to, o->tag, data, n) < 0)
		return -1;
	return check_entries(c, o, data); /* the other's receiving ends stand in front */
}

static int two_peers(struct client *c, const struct round *o, uint8_t *recv, uint8_t *send,
		     int32_t bytes)
{
	int32_t n_recv = (int32_t)o->n_recv * bytes, n_send = (int32_t)o->n_send * bytes;

	if ((n_recv && client_send(c, o->from, o->tag, recv, n_recv) < 0) ||
	    (n_send && client_send(c, o->to, o->tag, send, n_send) < 0) ||
	    (n_send && client_recv(c, o->to, o->tag, send, n_send) < 0) ||
	    (n_recv && client_recv(c, o->from, o->tag, recv, n_recv) < 0))
		return -1;
	return check_entries(c, o, send);
}

static int set_up(struct client *c, const struct round *o)
{
	int32_t bytes = c->w->records->connect_bytes;
	uint8_t *data = calloc(o->n_recv + o->n_send + 1, (size_t)bytes), *send;
	int r;

	if (!data)
		return wire_fail("no memory");
	send = data + o->n_recv * (size_t)bytes;
	for (unsigned i = 0; i < o->n_recv; i++)
		say_handle(c, o->from, i, data + i * (size_t)bytes);
	for (unsigned i = 0; i < o->n_send; i++)
		say_sender(c, send + i * (size_t)bytes);
	r = o->from == o->to ? one_peer(c, o, data, bytes) : two_peers(c, o, data, send, bytes);
	free(data);
	return r;
}

/* So that nobody closes what another one still connects to. */
static int sync_up(struct client *c, const struct round *o)
{
	int32_t tag = o->tag + (1 << 7), n = client_is_old(c) ? sizeof(int32_t) : 0, word = 0;

	if (o->from == o->to) {
		if (!o->n_send && !o->n_recv)
			return 0;
		return client_send(c, o->to, tag, &word, n) < 0
			       ? -1
			       : client_recv(c, o->to, tag, &word, n);
	}
	if ((o->n_send && client_send(c, o->to, tag, &word, n) < 0) ||
	    (o->n_recv && client_send(c, o->from, tag, &word, n) < 0) ||
	    (o->n_send && client_recv(c, o->to, tag, &word, n) < 0))
		return -1;
	return o->n_recv ? client_recv(c, o->from, tag, &word, n) : 0;
}

int client_transports(struct client *c, const struct client_edges *e)
{
	uint32_t n = c->w->n_ranks;

	for (int is_sync = 0; is_sync < 2; is_sync++)
		for (uint32_t i = 1; i < n; i++) {
			struct round o = {.from = (c->rank + n - i) % n,
					  .to = (c->rank + i) % n,
					  .tag = (int32_t)(i << 8) + e->graph + 1};

			o.n_recv = e->n_recv[o.from];
			o.n_send = e->n_send[o.to];
			if ((is_sync ? sync_up(c, &o) : set_up(c, &o)) < 0)
				return -1;
		}
	return 0;
}
