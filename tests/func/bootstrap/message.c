/* See client.h. Messages between ranks, each on a connection of its own. */
#include <stdlib.h>

#include "client.h"
#include "wire.h"

int client_open(struct client *c, uint32_t to, int32_t tag)
{
	int fd = wire_connect(c->peers + (size_t)to * NCCL_ADDRESS_BYTES, c->magic, c->until_ns);
	int32_t head[2] = {(int32_t)c->rank, tag};
	int r;

	if (fd < 0)
		return -1;
	if (c->w->records->has_two_heads) {
		r = wire_send_message(fd, &head[0], sizeof(head[0]), c->until_ns);
		if (r == 0)
			r = wire_send_message(fd, &head[1], sizeof(head[1]), c->until_ns);
	} else {
		r = wire_send_message(fd, head, sizeof(head), c->until_ns);
	}
	if (r < 0)
		wire_close(&fd);
	return fd;
}

int client_send(struct client *c, uint32_t to, int32_t tag, const void *bytes, int32_t n)
{
	int fd = client_open(c, to, tag), r;

	if (fd < 0)
		return -1;
	r = wire_send_message(fd, bytes, n, c->until_ns);
	wire_close(&fd);
	return r;
}

static int recv_head(struct client *c, int fd, int32_t head[2])
{
	if (!c->w->records->has_two_heads)
		return wire_recv_message(fd, head, 2 * sizeof(*head), c->until_ns);
	if (wire_recv_message(fd, &head[0], sizeof(*head), c->until_ns) < 0)
		return -1;
	return wire_recv_message(fd, &head[1], sizeof(*head), c->until_ns);
}

static int unpark(struct client *c, uint32_t from, int32_t tag)
{
	for (struct client_parked **at = &c->parked; *at; at = &(*at)->next) {
		struct client_parked *p = *at;
		int fd = p->fd;

		if (p->rank != (int32_t)from || p->tag != tag)
			continue;
		*at = p->next;
		free(p);
		return fd;
	}
	return -1;
}

static int park(struct client *c, int fd, const int32_t head[2])
{
	struct client_parked **at = &c->parked, *p = calloc(1, sizeof(*p));

	if (!p)
		return wire_fail("no memory");
	*p = (struct client_parked){.rank = head[0], .tag = head[1], .fd = fd};
	while (*at)
		at = &(*at)->next;
	*at = p;
	return 0;
}

int client_accept(struct client *c, uint32_t from, int32_t tag)
{
	int fd = unpark(c, from, tag);
	int32_t head[2];

	while (fd < 0) {
		fd = wire_accept(c->peer_listen, c->magic, c->until_ns);
		if (fd < 0)
			return -1;
		if (recv_head(c, fd, head) < 0) {
			wire_close(&fd);
			return -1;
		}
		if (head[0] == (int32_t)from && head[1] == tag)
			return fd;
		if (park(c, fd, head) < 0) {
			wire_close(&fd);
			return -1;
		}
		fd = -1;
	}
	return fd;
}

int client_recv(struct client *c, uint32_t from, int32_t tag, void *bytes, int32_t n)
{
	int fd = client_accept(c, from, tag), r;

	if (fd < 0)
		return -1;
	r = wire_recv_message(fd, bytes, n, c->until_ns);
	if (r == 0 && c->w->records->first >= NCCL_CODE(2, 26, 0))
		r = wire_recv_end(fd, c->until_ns);
	wire_close(&fd);
	return r;
}

int client_barrier(struct client *c, int32_t tag)
{
	uint32_t n = c->w->n_ranks;

	for (uint32_t mask = 1; mask < n; mask <<= 1) {
		int32_t word = 0;

		if (client_send(c, (c->rank + mask) % n, tag, &word, sizeof(word)) < 0 ||
		    client_recv(c, (c->rank + n - mask) % n, tag, &word, sizeof(word)) < 0)
			return -1;
	}
	return 0;
}
