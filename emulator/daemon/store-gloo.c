/* See store-gloo.h. A group is known by what stands in front of the rank in its keys. Lazy
 * peers say only who they are, so each virtual rank that is asked for has a port of its own;
 * otherwise one port does for the group. nboxd never connects: its ports have the lowest
 * raw bytes, so that the real side is always the one that does. */
#include "daemon/store-gloo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/groups.h"
#include "daemon/low-port.h"
#include "daemon/store-private.h"
#include "store/buffer.h"
#include "store/gloo-ring.h"
#include "store/gloo.h"

#define OPS_KEPT 64 /* of a group: older ones are over */
#define OUT_MAX (64u << 20) /* for one that does not read */
#define SEQ_NS (5 * NS_PER_S) /* for a connection to say who it is */
#define ALL_RANKS UINT32_MAX
#define RING_ASKS_MAX 4 /* of a connection in one all-gather; gloo has two under way */

struct gloo_conn {
	struct gloo_group *group; /* borrowed */
	int fd;                   /* owned */
	struct event *read_event, *write_event; /* owned */
	uint32_t virtual_rank, real_rank; /* ALL_RANKS: not yet known */
	bool has_seq;
	uint64_t since_ns;
	struct buffer in, out;
	struct gloo_conn *prev, *next;
};

/* A real rank is ready to receive from a virtual one. */
struct gloo_ask {
	struct gloo_conn *conn; /* borrowed */
	uint64_t length, since_ns;
	bool is_told;
	struct gloo_ask *prev, *next;
};

struct gloo_pair {
	uint32_t from, to;
};

struct gloo_op {
	uint64_t slot;
	struct gloo_ask *asks;  /* owned */
	struct gloo_pair *come; /* barrier: messages of real ranks; owned */
	size_t n_come;
	struct buffer content; /* broadcast */
	bool has_content;
	struct gloo_ring ring; /* all-gather */
	struct gloo_op *prev, *next;
};

struct gloo_port {
	struct gloo_group *group; /* borrowed */
	uint32_t virtual_rank;    /* ALL_RANKS: of all of the group */
	int fd;                   /* owned */
	struct event *event;      /* owned */
	struct sockaddr_storage addr;
	struct gloo_port *prev, *next;
};

struct gloo_member {
	uint32_t rank;
	int64_t world_rank;
};

struct gloo_group {
	UT_hash_handle hh;
	struct store_server *store; /* borrowed */
	bool is_default, is_lazy, is_told;
	uint32_t n_ranks; /* 0: not known */
	struct sockaddr_storage addr; /* of the first real member */
	struct gloo_member *real; /* owned */
	uint32_t *ranks;          /* owned: theirs, sorted */
	size_t n_real, n_ops;
	uint64_t set_ns; /* when a real rank has set its address last */
	struct gloo_port *ports; /* owned lists */
	struct gloo_conn *conns;
	struct gloo_op *ops;
	char name[72];
	size_t group_at, n_group; /* torch's name of it, in the key */
	size_t n_key;
	uint8_t key[];
};

struct store_gloo {
	struct gloo_group *groups; /* hash, owned */
};

/* --- life ------------------------------------------------------------------------------- */

static void op_free(struct gloo_group *g, struct gloo_op *op)
{
	struct gloo_ask *ask, *next;

	DL_DELETE(g->ops, op);
	g->n_ops--;
	DL_FOREACH_SAFE(op->asks, ask, next)
		free(ask);
	buffer_deinit(&op->content);
	gloo_ring_deinit(&op->ring);
	free(op->come);
	free(op);
}

static void conn_free(struct gloo_conn *c)
{
	struct gloo_ask *ask, *next;
	struct gloo_op *op;

	DL_FOREACH(c->group->ops, op)
		DL_FOREACH_SAFE(op->asks, ask, next)
			if (ask->conn == c) {
				DL_DELETE(op->asks, ask);
				free(ask);
			}
	DL_DELETE(c->group->conns, c);
	if (c->read_event)
		event_free(c->read_event);
	if (c->write_event)
		event_free(c->write_event);
	close(c->fd);
	buffer_deinit(&c->in);
	buffer_deinit(&c->out);
	free(c);
}

static void port_free(struct gloo_port *p)
{
	DL_DELETE(p->group->ports, p);
	if (p->event)
		event_free(p->event);
	close(p->fd);
	free(p);
}

struct store_gloo *gloo_free(struct store_gloo *gl)
{
	struct gloo_group *g, *next;

	if (!gl)
		return NULL;
	HASH_ITER(hh, gl->groups, g, next) {
		HASH_DEL(gl->groups, g);
		while (g->conns)
			conn_free(g->conns);
		while (g->ops)
			op_free(g, g->ops);
		while (g->ports)
			port_free(g->ports);
		free(g->ranks);
		free(g->real);
		free(g);
	}
	free(gl);
	return NULL;
}

/* --- answers ------------------------------------------------------------------------------ */

static bool is_real(void *ctx, uint32_t rank)
{
	const struct gloo_group *g = ctx;
	const struct config *c = g->store->daemon->config;

	for (size_t i = 0; g->is_default && i < c->n_real; i++)
		if (c->real[i] == rank)
			return true;
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].rank == rank)
			return true;
	return false;
}

struct barrier_ctx {
	struct gloo_group *group;
	const struct gloo_op *op;
};

static bool barrier_is_real(void *ctx, uint32_t rank)
{
	return is_real(((struct barrier_ctx *)ctx)->group, rank);
}

static bool barrier_has_come(void *ctx, uint32_t from, uint32_t to)
{
	const struct gloo_op *op = ((struct barrier_ctx *)ctx)->op;

	for (size_t i = 0; i < op->n_come; i++)
		if (op->come[i].from == from && op->come[i].to == to)
			return true;
	return false;
}

/* The group's size, from a barrier or an all-gather: rank 0 receives first from the last rank, and the
 * last rank sends first to rank 0. Else the job's own list may say it. */
static void learn_size(struct gloo_group *g, uint32_t real, uint32_t peer, bool is_receiver)
{
	uint32_t highest = 0;

	if (g->n_ranks)
		return;
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].rank > highest)
			highest = g->real[i].rank;
	if (is_receiver && real == 0)
		g->n_ranks = peer + 1;
	else if (!is_receiver && real == highest && peer == 0)
		g->n_ranks = real + 1;
	if (!g->n_ranks)
		g->n_ranks = groups_size(g->store->daemon,
					 (struct store_bytes){g->key + g->group_at, g->n_group});
	if (g->n_ranks)
		log_info("store: %s has %u ranks", g->name, g->n_ranks);
}

static int conn_flush(struct gloo_conn *c)
{
	while (c->out.n) {
		ssize_t n = send(c->fd, buffer_front(&c->out), c->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			buffer_take(&c->out, (size_t)n);
		else if (errno == EAGAIN || errno == ENOBUFS)
			return event_add(c->write_event, NULL) < 0 ? -ENOMEM : 0;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int say(struct gloo_conn *c, enum gloo_opcode opcode, uint64_t slot, uint64_t length,
	       const void *body)
{
	struct gloo_frame f = {.n_bytes = sizeof(f) + (body ? length : 0), .opcode = opcode,
			       .slot = slot, .length = length};
	int r;

	if (c->out.n + f.n_bytes > OUT_MAX)
		return -ENOBUFS; /* asks on and on, and does not read */
	r = buffer_add(&c->out, &f, sizeof(f));
	return r < 0 || !body ? r : buffer_add(&c->out, body, length);
}

static struct gloo_ranks ranks_of(const struct gloo_group *g)
{
	const struct config *c = g->store->daemon->config;

	return g->is_default ? (struct gloo_ranks){g->n_ranks, c->real, c->n_real}
			     : (struct gloo_ranks){g->n_ranks, g->ranks, g->n_real};
}

/* Return: 1 answered; 0 not yet; negative errno. */
static int answer(struct gloo_group *g, struct gloo_op *op, struct gloo_ask *ask)
{
	struct barrier_ctx ctx = {g, op};
	struct gloo_barrier b = {g->n_ranks, barrier_is_real, barrier_has_come, &ctx};
	struct gloo_ranks ranks = ranks_of(g);
	struct gloo_conn *c = ask->conn;
	const uint8_t *part = NULL;
	int r = 1;

	if (gloo_kind(op->slot) == GLOO_ALLGATHER) {
		r = g->n_ranks ? gloo_ring_get(&op->ring, &ranks, c->real_rank, ask->length, &part) : 0;
	} else if (gloo_kind(op->slot) == GLOO_BROADCAST) {
		if (!op->has_content)
			return 0;
		if (op->content.n != ask->length)
			return -EPROTO;
	} else if (g->n_ranks) {
		r = gloo_barrier_may_send(&b, c->virtual_rank, c->real_rank);
	} else {
		r = g->n_real == 1; /* nobody to wait for */
	}
	if (r <= 0)
		return r;
	r = say(c, GLOO_SEND_READY, op->slot, ask->length, NULL);
	if (r == 0)
		r = say(c, GLOO_DATA, op->slot, ask->length,
			part ? part : op->has_content ? buffer_front(&op->content) : (const uint8_t *)"");
	return r < 0 ? r : 1;
}

/* All that waits in @op and can be answered now. Nobody is freed here: a connection with a
 * trouble is shut down, and its end is seen by libevent. */
static void answer_all(struct gloo_group *g, struct gloo_op *op)
{
	struct gloo_ask *ask, *next;

	DL_FOREACH_SAFE(op->asks, ask, next) {
		struct gloo_conn *c = ask->conn;
		int r = answer(g, op, ask);

		if (r == 0)
			continue;
		DL_DELETE(op->asks, ask);
		free(ask);
		if (r < 0 || conn_flush(c) < 0)
			shutdown(c->fd, SHUT_RDWR);
	}
}

static struct gloo_op *op_get(struct gloo_group *g, uint64_t slot)
{
	struct gloo_op *op;

	DL_FOREACH(g->ops, op)
		if (op->slot == slot)
			return op;
	if (g->n_ops == OPS_KEPT)
		op_free(g, g->ops);
	op = calloc(1, sizeof(*op));
	if (!op)
		return NULL;
	op->slot = slot;
	DL_APPEND(g->ops, op);
	g->n_ops++;
	return op;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int refuse(struct gloo_conn *c, const char *what)
{
	struct gloo_group *g = c->group;

	if (!g->is_told)
		server_warn(g->store->daemon, "store: rank %u of %s calls %s with rank %u, which is virtual: gloo "
			    "calls with virtual ranks can be barriers, all_gather (with data mirror), and broadcasts and "
			    "scatters from a real rank, for the values of others would be needed. Use backend \"nccl\" for this group; the "
			    "connection is closed", c->real_rank, g->name, what, c->virtual_rank);
	g->is_told = true;
	return -ENOTSUP;
}

static int on_data(struct gloo_conn *c, struct gloo_op *op, const void *body, uint64_t length)
{
	struct gloo_ranks ranks = ranks_of(c->group);
	struct gloo_pair *come;

	if (gloo_kind(op->slot) == GLOO_SCATTER)
		return 0; /* a virtual rank's part, that nobody looks at */
	if (gloo_kind(op->slot) == GLOO_ALLGATHER)
		return c->group->n_ranks ? gloo_ring_put(&op->ring, &ranks, c->real_rank, body, length) : -ENOTSUP;
	if (gloo_kind(op->slot) == GLOO_BROADCAST) {
		if (!op->has_content && buffer_add(&op->content, body, length) < 0)
			return -ENOMEM;
		op->has_content = true;
		return 0;
	}
	if (barrier_has_come(&(struct barrier_ctx){c->group, op}, c->real_rank, c->virtual_rank))
		return -EPROTO; /* a barrier has one message of each pair */
	come = realloc(op->come, (op->n_come + 1) * sizeof(*come));
	if (!come)
		return -ENOMEM;
	op->come = come;
	come[op->n_come++] = (struct gloo_pair){c->real_rank, c->virtual_rank};
	return 0;
}

static int on_recv_ready(struct gloo_conn *c, struct gloo_op *op, uint64_t length)
{
	uint32_t n = 0, most = gloo_kind(op->slot) == GLOO_ALLGATHER ? RING_ASKS_MAX : 1;
	struct gloo_ask *ask;

	DL_FOREACH(op->asks, ask)
		n += ask->conn == c;
	if (n == most)
		return -EPROTO; /* as above, and one receives once in a broadcast */
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	*ask = (struct gloo_ask){.conn = c, .length = length, .since_ns = clock_now_ns()};
	DL_APPEND(op->asks, ask);
	return 0;
}

/* In an all-gather virtual ranks send what their templates do: that is mirror, no other data policy. */
static bool is_played_kind(const struct gloo_group *g, enum gloo_kind kind)
{
	return kind == GLOO_BARRIER || kind == GLOO_BROADCAST || kind == GLOO_SCATTER ||
	       (kind == GLOO_ALLGATHER && g->store->daemon->config->data == DATA_MIRROR);
}

/* Return: 0; negative errno: the connection is over. */
static int on_frame(struct gloo_conn *c, const struct gloo_frame *f, const void *body)
{
	enum gloo_kind kind = gloo_kind(f->slot);
	struct gloo_ranks ranks;
	struct gloo_op *op;
	int r = 0;

	if (!is_played_kind(c->group, kind) || (kind == GLOO_SCATTER && f->opcode == GLOO_RECV_READY))
		return refuse(c, gloo_kind_name(kind));
	if (kind == GLOO_BARRIER && f->length) /* its messages are empty, and so are the answers */
		return -EPROTO;
	op = op_get(c->group, f->slot);
	if (!op)
		return -ENOMEM;
	if ((kind == GLOO_BARRIER || kind == GLOO_ALLGATHER) && f->opcode != GLOO_DATA)
		learn_size(c->group, c->real_rank, c->virtual_rank, f->opcode == GLOO_RECV_READY);
	if (f->opcode == GLOO_SEND_READY)
		r = say(c, GLOO_RECV_READY, f->slot, f->length, NULL);
	else if (f->opcode == GLOO_RECV_READY)
		r = on_recv_ready(c, op, f->length);
	else
		r = on_data(c, op, body, f->length);
	if (r == 0)
		answer_all(c->group, op);
	ranks = ranks_of(c->group);
	if (r == 0 && kind == GLOO_ALLGATHER && ranks.n_ranks && gloo_ring_is_over(&op->ring, &ranks))
		op_free(c->group, op); /* what it keeps may be much */
	return r;
}

/* What it writes first. Return: 0; -EPROTO. */
static int take_seq(struct gloo_conn *c, int64_t seq)
{
	struct gloo_group *g = c->group;

	if (seq < 0 || (!g->is_lazy && seq / g->n_ranks >= g->n_ranks))
		return -EPROTO;
	if (!g->is_lazy)
		c->virtual_rank = (uint32_t)(seq / g->n_ranks);
	c->real_rank = (uint32_t)(g->is_lazy ? seq : seq % g->n_ranks);
	c->has_seq = true;
	return is_real(g, c->real_rank) ? 0 : -EPROTO;
}

static int conn_read(struct gloo_conn *c)
{
	static uint8_t bytes[64 << 10];
	ssize_t got = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	int r = 0;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got == 0)
		return -EPIPE;
	if (buffer_add(&c->in, bytes, (size_t)got) < 0)
		return -ENOMEM;
	while (r == 0) {
		struct gloo_frame f;

		if (!c->has_seq) {
			int64_t seq;

			if (c->in.n < sizeof(seq))
				return 0;
			memcpy(&seq, buffer_front(&c->in), sizeof(seq));
			buffer_take(&c->in, sizeof(seq));
			r = take_seq(c, seq);
			continue;
		}
		r = gloo_frame_look(&c->in, &f);
		if (r <= 0)
			return r;
		r = on_frame(c, &f, buffer_front(&c->in) + sizeof(f));
		if (r == 0)
			buffer_take(&c->in, f.n_bytes);
	}
	return r;
}

/* --- sockets ---------------------------------------------------------------------------------- */

static void on_conn(evutil_socket_t fd, short what, void *ctx)
{
	struct gloo_conn *c = ctx;
	int r = what & EV_READ ? conn_read(c) : 0;

	(void)fd;
	if (r == 0)
		r = conn_flush(c);
	if (r == -EPROTO)
		server_warn_stranger(c->group->store->daemon, "store: a connection to %s is cut off: that is not "
				     "gloo as far as nboxd knows it", c->group->name);
	if (r < 0)
		conn_free(c);
}

static void on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
	struct gloo_port *p = ctx;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct gloo_conn *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	(void)what;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		store_refuse_one(p->group->store, listen_fd);
	if (fd >= 0 && !c)
		close(fd);
	if (!c)
		return;
	c->group = p->group;
	c->fd = fd;
	c->virtual_rank = p->virtual_rank;
	c->real_rank = ALL_RANKS;
	c->since_ns = clock_now_ns();
	DL_APPEND(p->group->conns, c);
	c->read_event = event_new(p->group->store->daemon->base, fd, EV_READ | EV_PERSIST, on_conn, c);
	c->write_event = event_new(p->group->store->daemon->base, fd, EV_WRITE, on_conn, c);
	if (!c->read_event || !c->write_event || event_add(c->read_event, NULL) < 0)
		conn_free(c);
}

/* Return: NULL when there is none. */
static struct gloo_port *port_get(struct gloo_group *g, uint32_t rank)
{
	uint32_t wanted = g->is_lazy ? rank : ALL_RANKS;
	struct gloo_port *p;

	DL_FOREACH(g->ports, p)
		if (p->virtual_rank == wanted)
			return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->group = g;
	p->virtual_rank = wanted;
	p->addr = g->addr;
	p->fd = low_port_listen(&p->addr);
	if (p->fd < 0) {
		free(p);
		return NULL;
	}
	DL_APPEND(g->ports, p);
	p->event = event_new(g->store->daemon->base, p->fd, EV_READ | EV_PERSIST, on_accept, p);
	if (!p->event || event_add(p->event, NULL) < 0) {
		port_free(p);
		return NULL;
	}
	return p;
}

/* --- addresses in the store ------------------------------------------------------------------- */

/* The key without its rank. */
static struct store_bytes prefix(struct store_bytes key)
{
	while (key.n && key.p[key.n - 1] != '/')
		key.n--;
	return key;
}

static struct gloo_group *group_get(struct store_server *ss, struct store_bytes key,
				    const struct torch_key *k)
{
	struct store_bytes name = prefix(key);
	struct gloo_group *g;
	char shown[41];

	if (!ss->gloo)
		ss->gloo = calloc(1, sizeof(*ss->gloo));
	if (!ss->gloo)
		return NULL;
	HASH_FIND(hh, ss->gloo->groups, name.p, name.n, g);
	if (g)
		return g;
	g = calloc(1, sizeof(*g) + name.n);
	if (!g)
		return NULL;
	g->store = ss;
	g->n_key = name.n;
	g->group_at = (size_t)(k->group.p - key.p);
	g->n_group = k->group.n;
	memcpy(g->key, name.p, name.n);
	g->is_default = k->is_default;
	if (k->is_default)
		snprintf(g->name, sizeof(g->name), "the default gloo group");
	else
		snprintf(g->name, sizeof(g->name), "gloo group \"%s\"",
			 store_bytes_print(k->group, shown, sizeof(shown)));
	HASH_ADD_KEYPTR(hh, ss->gloo->groups, g->key, g->n_key, g);
	return g;
}

/* A group in which every real rank has its world rank is the world's, as far as can be seen. */
static bool looks_like_world(const struct gloo_group *g)
{
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].world_rank != g->real[i].rank)
			return false;
	return g->n_real == g->store->daemon->config->n_real && g->real[0].rank != 0;
}

/* Whether somebody took nboxd for this rank. */
static bool is_played(const struct gloo_group *g, uint32_t rank)
{
	const struct gloo_conn *c;

	DL_FOREACH(g->conns, c)
		if (c->has_seq && c->virtual_rank == rank)
			return true;
	return false;
}

void gloo_on_address(struct store_server *ss, struct store_bytes key, const struct torch_key *k,
		     struct store_bytes value, int64_t world_rank)
{
	struct gloo_group *g = group_get(ss, key, k);
	struct gloo_address a;
	struct gloo_member *real;
	uint32_t *ranks;
	size_t at;

	if (!g || gloo_address_parse(value, &a) < 0)
		return;
	if (is_played(g, k->rank))
		server_warn(ss->daemon, "store: rank %u of %s is real, but came so late to it that nboxd has played "
			    "it: who has talked to that one will hang or fail", k->rank, g->name);
	for (size_t i = 0; i < g->n_real; i++) {
		if (g->real[i].rank != k->rank)
			continue;
		while (g->ops) /* the group is made anew, and counts its calls from 0 */
			op_free(g, g->ops);
		return;
	}
	ranks = realloc(g->ranks, (g->n_real + 1) * sizeof(*ranks));
	if (!ranks)
		return;
	g->ranks = ranks;
	real = realloc(g->real, (g->n_real + 1) * sizeof(*real));
	if (!real)
		return;
	g->real = real;
	for (at = g->n_real; at > 0 && ranks[at - 1] > k->rank; at--)
		ranks[at] = ranks[at - 1];
	ranks[at] = k->rank;
	real[g->n_real++] = (struct gloo_member){k->rank, world_rank};
	g->addr = a.sockaddr;
	g->set_ns = clock_now_ns();
	g->is_lazy = a.n_peers == 0;
	if (a.n_peers)
		g->n_ranks = a.n_peers;
	else if (k->is_default || looks_like_world(g))
		g->n_ranks = ss->daemon->config->world;
}

uint64_t gloo_quiet_since_ns(const struct store_server *ss, struct store_bytes key)
{
	struct store_bytes name = prefix(key);
	struct gloo_group *g = NULL;

	if (ss->gloo)
		HASH_FIND(hh, ss->gloo->groups, name.p, name.n, g);
	if (!g || !g->n_real)
		return UINT64_MAX;
	return g->n_real >= ss->daemon->config->n_real ? 0 : g->set_ns;
}

bool gloo_play(struct store_server *ss, struct store_bytes key, const struct torch_key *k)
{
	struct gloo_group *g = group_get(ss, key, k);
	struct buffer address = {0};
	struct gloo_port *p;
	bool is_set = false;

	/* without a real member's address there is nobody to be connected to */
	if (!g || !g->n_real || (g->n_ranks && k->rank >= g->n_ranks))
		return false;
	p = port_get(g, k->rank);
	if (p && gloo_address_write(&p->addr, k->rank, g->is_lazy ? 0 : g->n_ranks, &address) == 0)
		is_set = store_set(ss->store, key,
				   (struct store_bytes){buffer_front(&address), address.n}) == 0;
	buffer_deinit(&address);
	return is_set;
}

static void ask_text(const struct gloo_group *g, const struct gloo_op *op, const struct gloo_ask *ask,
		     uint64_t now_ns, char *buf, size_t size)
{
	enum gloo_kind kind = gloo_kind(op->slot);

	snprintf(buf, size, "store: rank %u of %s has waited %.1f s in a %s for rank %u, which is virtual: %s",
		 ask->conn->real_rank, g->name, (double)(now_ns - ask->since_ns) / 1e9, gloo_kind_name(kind),
		 ask->conn->virtual_rank,
		 kind == GLOO_BROADCAST ?
			 "no real rank has sent anything (a broadcast from a virtual rank has no values)" :
		 g->n_ranks ? "a real rank has not come to it" :
			      "nboxd does not know how many ranks the group has");
}

void gloo_tick(struct store_server *ss, uint64_t now_ns)
{
	struct gloo_group *g, *next;
	const struct gloo_conn *c;
	struct gloo_ask *ask;
	struct gloo_op *op;
	char text[512];

	if (!ss->gloo)
		return;
	HASH_ITER(hh, ss->gloo->groups, g, next) {
		/* its end is seen by libevent */
		DL_FOREACH(g->conns, c)
			if (!c->has_seq && now_ns >= c->since_ns + SEQ_NS)
				shutdown(c->fd, SHUT_RDWR);
		DL_FOREACH(g->ops, op) {
			DL_FOREACH(op->asks, ask) {
				if (ask->is_told || now_ns < ask->since_ns + SERVER_WARN_NS)
					continue;
				ask->is_told = true;
				if (gloo_kind(op->slot) == GLOO_ALLGATHER && !g->n_ranks)
					shutdown(ask->conn->fd, SHUT_RDWR); /* and never will be known */
				ask_text(g, op, ask, now_ns, text, sizeof(text));
				server_warn(ss->daemon, "%s", text);
			}
		}
	}
}

void gloo_describe(const struct store_server *ss, uint64_t now_ns,
		   void (*say_it)(void *ctx, const char *sentence), void *ctx)
{
	struct gloo_group *g, *next;
	const struct gloo_ask *ask;
	const struct gloo_op *op;
	char text[512];

	if (!ss->gloo)
		return;
	HASH_ITER(hh, ss->gloo->groups, g, next)
		DL_FOREACH(g->ops, op)
			DL_FOREACH(op->asks, ask) {
				ask_text(g, op, ask, now_ns, text, sizeof(text));
				say_it(ctx, text);
			}
}
