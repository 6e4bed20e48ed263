/* See impl.h: connections are set up as in ncclTransportP2pSetup. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"
#include "wire.h"

struct pipe *comm_pipe(ncclComm_t c, uint32_t peer, int channel, int index, bool is_send)
{
	for (struct pipe *p = c->pipes; p; p = p->next)
		if (p->peer == peer && p->channel == channel && p->index == index &&
		    p->is_send == is_send)
			return p;
	return NULL;
}

static int by_channel(const void *a, const void *b)
{
	return (*(struct pipe *const *)a)->channel - (*(struct pipe *const *)b)->channel;
}

/* Those of @new that go to or come from @peer, channel by channel. */
static unsigned of_peer(struct pipe *new, uint32_t peer, bool is_send, struct pipe **ret)
{
	unsigned n = 0;

	for (struct pipe *p = new; p; p = p->next)
		if (p->peer == peer && p->is_send == is_send)
			ret[n++] = p;
	qsort(ret, n, sizeof(struct pipe *), by_channel);
	return n;
}

struct sets {
	struct pipe *recv[CHANNELS_MAX], *send[CHANNELS_MAX];
	unsigned n_recv, n_send;
	uint32_t from, to;
	int32_t tag;
};

static void find_sets(ncclComm_t c, struct pipe *new, uint32_t i, int graph, struct sets *s)
{
	s->from = (c->rank + c->n_ranks - i) % c->n_ranks;
	s->to = (c->rank + i) % c->n_ranks;
	s->tag = (int32_t)(i << 8) + graph + 1;
	s->n_recv = of_peer(new, s->from, false, s->recv);
	s->n_send = of_peer(new, s->to, true, s->send);
}

static int say_entry(ncclComm_t c, struct pipe *p, uint8_t *entry)
{
	if (p->is_net && !p->is_send)
		return net_listen(c, entry, &p->listener);
	if (p->is_net) {
		int32_t rank = (int32_t)c->rank;

		memcpy(entry, &rank, sizeof(rank));
		return 0;
	}
	if (!p->is_send) {
		memcpy(entry + 4, "shared", 6);
		return 0;
	}
	if (pipe_map(p, -1) < 0)
		return wire_fail("no shared memory");
	int32_t who[4] = {(int32_t)c->rank, 0, (int32_t)getpid(), p->fd};

	memcpy(entry, who, sizeof(who));
	return 0;
}

static int hear_entry(struct pipe *p, const uint8_t *entry, uint8_t *ret_handle)
{
	int32_t who[4];
	char path[64];
	int fd;

	if (p->is_net) {
		if (p->is_send)
			memcpy(ret_handle, entry, NET_HANDLE_BYTES);
		memcpy(who, entry, sizeof(who));
		if (!p->is_send && who[0] != (int32_t)p->peer)
			return wire_fail("the sender of channel %d says to be rank %d, not %u",
					 p->channel, who[0], p->peer);
		return 0;
	}
	if (p->is_send)
		return 0;
	memcpy(who, entry, sizeof(who));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", who[2], who[3]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pipe_map(p, fd) < 0)
		return wire_fail("no memory of rank %u (%s)", p->peer, path);
	return 0;
}

static int hear_all(struct sets *s, const uint8_t *of_receiver, const uint8_t *of_sender,
		    size_t bytes, uint8_t (*handles)[NET_HANDLE_BYTES], struct pipe *new)
{
	for (unsigned i = 0; i < s->n_send; i++) {
		unsigned at = 0;

		for (struct pipe *p = new; p != s->send[i]; p = p->next)
			at++;
		if (hear_entry(s->send[i], of_receiver + i * bytes, handles[at]) < 0)
			return -1;
	}
	for (unsigned i = 0; i < s->n_recv; i++)
		if (hear_entry(s->recv[i], of_sender + i * bytes, NULL) < 0)
			return -1;
	return 0;
}

static int exchange(ncclComm_t c, struct sets *s, struct pipe *new,
		    uint8_t (*handles)[NET_HANDLE_BYTES])
{
	int32_t bytes = c->w.records->connect_bytes, n_recv = (int32_t)s->n_recv * bytes,
		n_send = (int32_t)s->n_send * bytes;
	uint8_t *data = calloc(s->n_recv + s->n_send + 1, (size_t)bytes), *recv = data,
		*send = data + n_recv;
	struct client *cl = &c->client;
	int r = 0;

	for (unsigned i = 0; i < s->n_recv && r == 0; i++)
		r = say_entry(c, s->recv[i], recv + i * (size_t)bytes);
	for (unsigned i = 0; i < s->n_send && r == 0; i++)
		r = say_entry(c, s->send[i], send + i * (size_t)bytes);
	if (r == 0 && s->from == s->to && n_recv + n_send) {
		r = client_send(cl, s->to, s->tag, data, n_recv + n_send);
		if (r == 0)
			r = client_recv(cl, s->to, s->tag, data, n_recv + n_send);
		if (r == 0)
			r = hear_all(s, data, data + n_send, (size_t)bytes, handles, new);
	} else if (r == 0 && s->from != s->to) {
		if ((n_recv && client_send(cl, s->from, s->tag, recv, n_recv) < 0) ||
		    (n_send && client_send(cl, s->to, s->tag, send, n_send) < 0) ||
		    (n_send && client_recv(cl, s->to, s->tag, send, n_send) < 0) ||
		    (n_recv && client_recv(cl, s->from, s->tag, recv, n_recv) < 0))
			r = -1;
		if (r == 0)
			r = hear_all(s, send, recv, (size_t)bytes, handles, new);
	}
	free(data);
	return r;
}

static int sync_up(ncclComm_t c, struct sets *s)
{
	int32_t tag = s->tag + (1 << 7), word;
	struct client *cl = &c->client;

	if (s->from == s->to) {
		if (!s->n_send && !s->n_recv)
			return 0;
		return client_send(cl, s->to, tag, &word, 0) < 0 ||
				       client_recv(cl, s->to, tag, &word, 0) < 0
			       ? -1
			       : 0;
	}
	return (s->n_send && client_send(cl, s->to, tag, &word, 0) < 0) ||
			       (s->n_recv && client_send(cl, s->from, tag, &word, 0) < 0) ||
			       (s->n_send && client_recv(cl, s->to, tag, &word, 0) < 0) ||
			       (s->n_recv && client_recv(cl, s->from, tag, &word, 0) < 0)
		       ? -1
		       : 0;
}

static int register_all(ncclComm_t c, struct pipe *p)
{
	for (int i = p->index ? PLUGIN_SIMPLE : 0; i < PLUGIN_N_PROTOCOLS; i++)
		if (net_register(c, p->net, pipe_slot(p, i, 0), STEPS * step_bytes(i),
				 &p->registrations[i]))
			return wire_fail("the network registers no memory");
	return 0;
}

/* connect() and accept() in turn, until all have answered. */
static int connect_all(ncclComm_t c, struct pipe *new, uint8_t (*handles)[NET_HANDLE_BYTES])
{
	bool is_all = false;
	unsigned idle = 0;

	while (!is_all) {
		unsigned at = 0;

		is_all = true;
		for (struct pipe *p = new; p; p = p->next, at++) {
			int r;

			if (!p->is_net || p->net)
				continue;
			r = p->is_send ? net_connect(c, handles[at], &p->net)
				       : net_accept(c, p->listener, &p->net);
			if (r)
				return wire_fail("the network does not connect to rank %u: %d",
						 p->peer, r);
			if (!p->net)
				is_all = false;
			else if (pipe_map(p, -1) < 0 || register_all(c, p) < 0)
				return -1;
		}
		if (c->aborted)
			return wire_fail("aborted");
		if (!is_all)
			pause_for(&idle);
	}
	return 0;
}

static int set_up_new(ncclComm_t c, int graph, struct pipe *new,
		      uint8_t (*handles)[NET_HANDLE_BYTES])
{
	struct sets s;

	for (uint32_t i = 1; i < c->n_ranks; i++) {
		find_sets(c, new, i, graph, &s);
		if (exchange(c, &s, new, handles) < 0)
			return -1;
	}
	if (connect_all(c, new, handles) < 0)
		return -1;
	for (uint32_t i = 1; i < c->n_ranks; i++) {
		find_sets(c, new, i, graph, &s);
		if (sync_up(c, &s) < 0)
			return -1;
	}
	return 0;
}

int comm_set_up(ncclComm_t c, int graph, const struct edge *edges, size_t n)
{
	struct pipe *new = NULL, **last = &new;
	uint8_t(*handles)[NET_HANDLE_BYTES];
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		const struct edge *e = &edges[i];
		bool is_there = e->peer == c->rank ||
				comm_pipe(c, e->peer, e->channel, e->index, e->is_send);

		for (struct pipe *p = new; p && !is_there; p = p->next)
			is_there = p->peer == e->peer && p->channel == e->channel &&
				   p->is_send == e->is_send;
		if (is_there)
			continue;
		*last = pipe_new(e->peer, e->channel, e->index, e->is_send,
				 !comm_is_local(c, e->peer));
		if (!*last)
			return wire_fail("no memory");
		last = &(*last)->next;
	}
	handles = calloc(n + 1, sizeof(*handles));
	if (new)
		r = set_up_new(c, graph, new, handles);
	pthread_mutex_lock(&c->lock);
	*last = c->pipes;
	c->pipes = new;
	pthread_mutex_unlock(&c->lock);
	free(handles);
	return r;
}
