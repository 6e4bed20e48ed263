/* See host.h. */
#include "host.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire.h"

#define PATIENCE_NS (120 * NS_PER_S) /* of a machine that is busy */

/* --- the loop ---------------------------------------------------------------------- */

static void on_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	struct host *h = ctx;

	(void)comm;
	snprintf(h->failed, sizeof(h->failed), "%s", sentence);
	h->n_failed++;
	h->has_failed = true;
}

static void on_refused(void *ctx, const char *sentence)
{
	struct host *h = ctx;

	snprintf(h->refused, sizeof(h->refused), "%s", sentence);
	h->n_refused++;
}

static int on_votes(void *ctx, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		    struct err *err)
{
	struct host *h = ctx;

	(void)err;
	for (uint32_t r = 0; r < bootstrap_comm_size(parent); r++) {
		color[r] = h->color(r);
		key[r] = h->key(r);
	}
	return 0;
}

static void on_child(void *ctx, struct bootstrap_comm *parent, struct bootstrap_comm *child)
{
	struct host *h = ctx;

	(void)parent;
	h->last_child = child;
	h->n_children++;
}

static void on_call(evutil_socket_t fd, short what, void *ctx)
{
	struct host *h = ctx;
	struct {
		void (*fn)(struct host *h, void *ctx);
		void *ctx;
		int done_fd;
	} call;

	(void)what;
	if (read(fd, &call, sizeof(call)) != sizeof(call))
		return;
	call.fn(h, call.ctx);
	if (write(call.done_fd, "", 1) != 1)
		abort();
}

void host_call(struct host *h, void (*fn)(struct host *h, void *ctx), void *ctx)
{
	struct {
		void (*fn)(struct host *h, void *ctx);
		void *ctx;
		int done_fd;
	} call = {fn, ctx, -1};
	int done[2];
	char byte;

	if (pipe(done) < 0)
		abort();
	call.done_fd = done[1];
	if (write(h->call_fds[1], &call, sizeof(call)) != sizeof(call) ||
	    read(done[0], &byte, 1) != 1)
		abort();
	close(done[0]);
	close(done[1]);
}

static void *run_loop(void *ctx)
{
	struct host *h = ctx;

	event_base_dispatch(h->base);
	return NULL;
}

static void end_loop(struct host *h, void *ctx)
{
	(void)ctx;
	event_base_loopbreak(h->base);
}

static void set_address(struct host *h, const char *address)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
	char own[32];

	snprintf(own, sizeof(own), "127.%d.%d.%d", 1 + (int)getpid() % 200,
		 (int)getpid() / 200 % 250, 1 + (int)getpid() / 50000 % 250);
	if (!address)
		address = own;
	memset(h->address, 0, sizeof(h->address));
	if (inet_pton(AF_INET, address, &a4.sin_addr) == 1)
		memcpy(h->address, &a4, sizeof(a4));
	else if (inet_pton(AF_INET6, address, &a6.sin6_addr) == 1)
		memcpy(h->address, &a6, sizeof(a6));
}

int host_start(struct host *h, const char *address, const struct bootstrap_serve_limits *limits)
{
	static const struct bootstrap_told told = {.failed = on_failed,
						   .votes = on_votes,
						   .child = on_child,
						   .refused = on_refused};
	uint8_t listening[NCCL_ADDRESS_BYTES];
	struct sockaddr_storage a = {0};
	struct err err = {""};
	int fd;

	memset(h, 0, sizeof(*h));
	set_address(h, address);
	fd = wire_listen(h->address, listening);
	if (fd < 0)
		return -1;
	wire_close(&fd);
	memcpy(&a, h->address, NCCL_ADDRESS_BYTES);
	h->base = event_base_new();
	if (!h->base || pipe(h->call_fds) < 0 ||
	    bootstrap_serve_new(h->base, (struct sockaddr *)&a, limits, &told, h, &h->serve, &err) <
		    0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	h->calls = event_new(h->base, h->call_fds[0], EV_READ | EV_PERSIST, on_call, h);
	if (!h->calls || event_add(h->calls, NULL) < 0 ||
	    pthread_create(&h->thread, NULL, run_loop, h))
		abort();
	return 0;
}

void host_stop(struct host *h)
{
	host_call(h, end_loop, NULL);
	pthread_join(h->thread, NULL);
	event_free(h->calls);
	bootstrap_serve_free(h->serve);
	event_base_free(h->base);
	close(h->call_fds[0]);
	close(h->call_fds[1]);
}

/* --- communicators ----------------------------------------------------------------- */

struct make {
	struct host_comm *c;
	struct err err;
	int r;
};

static void make_comm(struct host *h, void *ctx)
{
	struct make *m = ctx;
	struct host_comm *c = m->c;

	m->r = bootstrap_comm_make(bootstrap_serve_bootstrap(h->serve), c->w.records, c->w.n_ranks,
				   c->node, c->template, c->n_ids, c->ids, &c->comm, &m->err);
}

static void find_real(struct host_comm *c)
{
	for (uint32_t r = 0; r < c->w.n_ranks; r++)
		if (c->template[r] == r && c->n_real < HOST_RANKS_MAX)
			c->real[c->n_real++] = r;
}

static int comm_init(struct host_comm *c, struct host *h, const struct nccl_records *records,
		     uint32_t n, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->h = h;
	c->node = calloc(n, sizeof(*c->node));
	c->template = calloc(n, sizeof(*c->template));
	c->w = (struct said_world){.records = records,
				   .n_ranks = n,
				   .node = c->node,
				   .template = c->template,
				   .seed = seed};
	return c->node && c->template ? 0 : wire_fail("no memory");
}

static uint32_t rank_at(const struct host_places *p, uint32_t node, uint32_t place)
{
	return p->is_dealt ? place * (p->n_ranks / p->node_size) + node
			   : node * p->node_size + place;
}

int host_comm_make(struct host *h, const struct nccl_records *records, const struct host_places *p,
		   uint32_t n_ids, uint64_t seed, struct host_comm *ret)
{
	uint32_t n_nodes = p->n_ranks / p->node_size;
	struct make m = {.c = ret};

	if (comm_init(ret, h, records, p->n_ranks, seed) < 0)
		return -1;
	ret->n_ids = n_ids;
	ret->ids = calloc(n_ids, NCCL_ID_BYTES);
	if (!ret->ids)
		return wire_fail("no memory");
	for (uint32_t node = 0; node < n_nodes; node++) {
		uint32_t of = p->real_node[node % p->n_real_nodes];

		for (uint32_t i = 0; i < p->n_real_nodes; i++)
			if (p->real_node[i] == node)
				of = node;
		for (uint32_t place = 0; place < p->node_size; place++) {
			ret->node[rank_at(p, node, place)] = node;
			ret->template[rank_at(p, node, place)] = rank_at(p, of, place);
		}
	}
	find_real(ret);
	if (said_world_init(&ret->w) < 0)
		return -1;
	h->has_failed = false;
	host_call(h, make_comm, &m);
	return m.r < 0 ? wire_fail("no communicator: %s", m.err.text) : 0;
}

int host_comm_child(const struct host_comm *parent, const uint32_t *ranks, uint32_t n,
		    uint64_t seed, struct host_comm *ret)
{
	if (comm_init(ret, parent->h, parent->w.records, n, seed) < 0)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		ret->node[i] = parent->node[ranks[i]];
		for (uint32_t t = 0; t < n; t++)
			if (ranks[t] == parent->template[ranks[i]])
				ret->template[i] = t;
	}
	find_real(ret);
	return said_world_init(&ret->w);
}

void host_comm_free(struct host_comm *c)
{
	said_world_deinit(&c->w);
	free(c->node);
	free(c->template);
	free(c->ids);
}

static void end_comm(struct host *h, void *ctx)
{
	(void)h;
	bootstrap_comm_end(ctx);
}

void host_comm_end(struct host_comm *c)
{
	host_call(c->h, end_comm, c->comm);
	host_comm_free(c);
}

/* --- its real ranks ---------------------------------------------------------------- */

struct runner {
	struct host_comm *c;
	int (*fn)(struct host_comm *c, struct client *r, void *ctx);
	void *ctx;
	uint32_t rank;
	pthread_t thread;
	int r;
	char sentence[512];
};

static void *run_rank(void *ctx)
{
	struct runner *r = ctx;
	struct client client;

	wire_abort_by(&r->c->h->has_failed);
	client_new(&client, &r->c->w, r->rank, r->c->h->address, clock_now_ns() + PATIENCE_NS);
	r->r = r->fn(r->c, &client, r->ctx);
	if (r->r < 0)
		snprintf(r->sentence, sizeof(r->sentence), "%s", wire_error());
	client_free(&client);
	return NULL;
}

int host_run(struct host_comm *c, int (*fn)(struct host_comm *c, struct client *r, void *ctx),
	     void *ctx)
{
	struct runner runners[HOST_RANKS_MAX];
	int r = 0;

	for (uint32_t i = 0; i < c->n_real; i++) {
		runners[i] = (struct runner){.c = c, .fn = fn, .ctx = ctx, .rank = c->real[i]};
		if (pthread_create(&runners[i].thread, NULL, run_rank, &runners[i]))
			abort();
	}
	for (uint32_t i = 0; i < c->n_real; i++)
		pthread_join(runners[i].thread, NULL);
	/* who was aborted does not know why */
	for (int is_aborted = 0; is_aborted < 2; is_aborted++)
		for (uint32_t i = 0; i < c->n_real && r == 0; i++)
			if (runners[i].r < 0 &&
			    (is_aborted || strcmp(runners[i].sentence, "aborted") != 0))
				r = wire_fail("rank %u: %s", runners[i].rank, runners[i].sentence);
	return r;
}
