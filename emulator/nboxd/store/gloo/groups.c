/* See groups.h. A group is known by what stands in front of the rank in its keys. Lazy
 * peers name only their own rank, so each virtual rank that is asked for has a port of its own;
 * otherwise one port does for the group. nboxd never connects: its ports have the lowest
 * raw bytes, so that the real side is always the one that does. */
#include "nboxd/store/gloo/groups.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "nboxd/loop/loop.h"
#include "nboxd/loop/warn.h"
#include "nboxd/store/gloo/calls.h"
#include "nboxd/store/gloo/low-port.h"

#define SEQ_NS (5 * NS_PER_S) /* for a connection to name its ranks */

struct store_gloo {
	struct gloo_env env;
	struct gloo_group *groups; /* hash, owned */
};

/* --- life ------------------------------------------------------------------------------- */

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
	bufferevent_free(c->stream);
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

void gloo_clear(struct store_gloo *gl)
{
	struct gloo_group *g, *next;

	if (!gl)
		return;
	HASH_ITER(hh, gl->groups, g, next) {
		HASH_DEL(gl->groups, g);
		while (g->conns)
			conn_free(g->conns);
		while (g->ops)
			gloo_op_free(g, g->ops);
		while (g->ports)
			port_free(g->ports);
		free(g->ranks);
		free(g->real);
		free(g);
	}
}

int gloo_new(const struct gloo_env *env, struct store_gloo **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->env = *env;
	return 0;
}

struct store_gloo *gloo_free(struct store_gloo *gl)
{
	gloo_clear(gl);
	free(gl);
	return NULL;
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
	return gloo_is_real(g, c->real_rank) ? 0 : -EPROTO;
}

/* Return: 0; negative errno: the connection is over. */
static int take_frames(struct gloo_conn *c, struct evbuffer *in)
{
	int r = 0;

	while (r == 0) {
		struct gloo_frame f;
		const uint8_t *bytes;
		int64_t seq;

		if (!c->has_seq) {
			if (evbuffer_get_length(in) < sizeof(seq))
				return 0;
			evbuffer_remove(in, &seq, sizeof(seq));
			r = take_seq(c, seq);
			continue;
		}
		if (evbuffer_get_length(in) < sizeof(f))
			return 0;
		bytes = evbuffer_pullup(in, sizeof(f));
		r = bytes ? gloo_frame_look(bytes, evbuffer_get_length(in), &f) : -ENOMEM;
		if (r <= 0)
			return r;
		bytes = evbuffer_pullup(in, (ev_ssize_t)f.n_bytes);
		r = bytes ? gloo_on_frame(c, &f, bytes + sizeof(f)) : -ENOMEM;
		if (r == 0)
			evbuffer_drain(in, f.n_bytes);
	}
	return r;
}

/* --- sockets ---------------------------------------------------------------------------------- */

static void on_read(struct bufferevent *b, void *ctx)
{
	struct gloo_conn *c = ctx;
	int r = take_frames(c, bufferevent_get_input(b));

	if (r == -EPROTO)
		warn_stranger("store: a connection to %s is cut off: that is not "
			      "gloo as far as nboxd knows it",
			      c->group->name);
	if (r < 0)
		conn_free(c);
}

static void on_end(struct bufferevent *b, short what, void *ctx)
{
	(void)b;
	(void)what;
	conn_free(ctx);
}

static void on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
	struct gloo_port *p = ctx;
	CLEANUP(closep) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct gloo_conn *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	(void)what;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		p->group->env->refuse_one(p->group->env->ctx, listen_fd);
	if (!c)
		return;
	c->stream = bufferevent_socket_new(p->group->env->loop->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->stream) {
		free(c);
		return;
	}
	steal_fd(&fd);
	c->group = p->group;
	c->virtual_rank = p->virtual_rank;
	c->real_rank = ALL_RANKS;
	c->since_ns = clock_now_ns();
	DL_APPEND(p->group->conns, c);
	bufferevent_setcb(c->stream, on_read, NULL, on_end, c);
	if (bufferevent_enable(c->stream, EV_READ) < 0)
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
	p->event = event_new(g->env->loop->base, p->fd, EV_READ | EV_PERSIST, on_accept, p);
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

static struct gloo_group *group_get(struct store_gloo *gl, struct store_bytes key,
				    const struct torch_key *k)
{
	struct store_bytes name = prefix(key);
	struct gloo_group *g;
	char shown[41];

	HASH_FIND(hh, gl->groups, name.p, name.n, g);
	if (g)
		return g;
	g = calloc(1, sizeof(*g) + name.n);
	if (!g)
		return NULL;
	g->env = &gl->env;
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
	HASH_ADD_KEYPTR(hh, gl->groups, g->key, g->n_key, g);
	return g;
}

/* A group in which every real rank has its world rank is the world's, as far as can be seen. */
static bool looks_like_world(const struct gloo_group *g)
{
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].world_rank != g->real[i].rank)
			return false;
	return g->n_real == g->env->config->n_real && g->real[0].rank != 0;
}

/* Whether a real rank took nboxd for this rank. */
static bool is_played(const struct gloo_group *g, uint32_t rank)
{
	const struct gloo_conn *c;

	DL_FOREACH(g->conns, c)
		if (c->has_seq && c->virtual_rank == rank)
			return true;
	return false;
}

void gloo_on_address(struct store_gloo *gl, struct store_bytes key, const struct torch_key *k,
		     struct store_bytes value, int64_t world_rank)
{
	struct gloo_group *g = group_get(gl, key, k);
	struct gloo_address a;
	struct gloo_member *real;
	uint32_t *ranks;
	size_t at;

	if (!g || gloo_address_parse(value, &a) < 0)
		return;
	if (is_played(g, k->rank))
		warn_run(
			"store: rank %u of %s is real, but came so late to it that nboxd has played "
			"it: who has talked to that one will hang or fail",
			k->rank, g->name);
	for (size_t i = 0; i < g->n_real; i++) {
		if (g->real[i].rank != k->rank)
			continue;
		while (g->ops) /* the group is made anew, and counts its calls from 0 */
			gloo_op_free(g, g->ops);
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
		g->n_ranks = gl->env.config->world;
}

uint64_t gloo_quiet_since_ns(const struct store_gloo *gl, struct store_bytes key)
{
	struct store_bytes name = prefix(key);
	struct gloo_group *g;

	HASH_FIND(hh, gl->groups, name.p, name.n, g);
	if (!g || !g->n_real)
		return UINT64_MAX;
	return g->n_real >= gl->env.config->n_real ? 0 : g->set_ns;
}

bool gloo_play(struct store_gloo *gl, struct store_bytes key, const struct torch_key *k)
{
	struct gloo_group *g = group_get(gl, key, k);
	struct buffer address = {0};
	struct gloo_port *p;
	bool is_set = false;

	/* without a real member's address no peer could connect */
	if (!g || !g->n_real || (g->n_ranks && k->rank >= g->n_ranks))
		return false;
	p = port_get(g, k->rank);
	if (p && gloo_address_write(&p->addr, k->rank, g->is_lazy ? 0 : g->n_ranks, &address) == 0)
		is_set = gl->env.set_address(gl->env.ctx, key,
					     (struct store_bytes){address.data, address.n}) == 0;
	buffer_deinit(&address);
	return is_set;
}

static void ask_text(const struct gloo_group *g, const struct gloo_op *op,
		     const struct gloo_ask *ask, uint64_t now_ns, char *buf, size_t size)
{
	enum gloo_kind kind = gloo_kind(op->slot);

	snprintf(
		buf, size,
		"store: rank %u of %s has waited %.1f s in a %s for rank %u, which is virtual: %s",
		ask->conn->real_rank, g->name, (double)(now_ns - ask->since_ns) / 1e9,
		gloo_kind_name(kind), ask->conn->virtual_rank,
		kind == GLOO_BROADCAST
			? "no real rank has sent anything (a broadcast from a virtual rank has no values)"
		: g->n_ranks ? "a real rank has not come to it"
			     : "nboxd does not know how many ranks the group has");
}

void gloo_tick(struct store_gloo *gl, uint64_t now_ns)
{
	struct gloo_group *g, *next;
	struct gloo_conn *c;
	struct gloo_ask *ask;
	struct gloo_op *op;
	char text[512];

	HASH_ITER(hh, gl->groups, g, next) {
		/* its end is seen by libevent */
		DL_FOREACH(g->conns, c)
			if (!c->has_seq && now_ns >= c->since_ns + SEQ_NS)
				gloo_conn_end(c);
		DL_FOREACH(g->ops, op) {
			DL_FOREACH(op->asks, ask) {
				if (ask->is_told || now_ns < ask->since_ns + WARN_NS)
					continue;
				ask->is_told = true;
				if (gloo_kind(op->slot) == GLOO_ALLGATHER && !g->n_ranks)
					gloo_conn_end(ask->conn); /* and never will be known */
				ask_text(g, op, ask, now_ns, text, sizeof(text));
				warn_run("%s", text);
			}
		}
	}
}

void gloo_describe(const struct store_gloo *gl, uint64_t now_ns,
		   void (*say_it)(void *ctx, const char *sentence), void *ctx)
{
	struct gloo_group *g, *next;
	const struct gloo_ask *ask;
	const struct gloo_op *op;
	char text[512];

	HASH_ITER(hh, gl->groups, g, next)
		DL_FOREACH(g->ops, op)
			DL_FOREACH(op->asks, ask) {
				ask_text(g, op, ask, now_ns, text, sizeof(text));
				say_it(ctx, text);
			}
}
