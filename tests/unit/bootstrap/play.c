#include "play.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES (256u << 10)
#define ADDRESS_MARK 0x41u

enum { ADDRESS_PORT = 1, ADDRESS_ONCE, ADDRESS_RANK };

static void address_make(uint32_t kind, uint32_t id, uint8_t *ret)
{
	uint32_t words[3] = {ADDRESS_MARK, kind, id};

	memset(ret, 0, NCCL_ADDRESS_BYTES);
	memcpy(ret, words, sizeof(words));
}

void play_port(unsigned port, uint8_t ret_address[NCCL_ADDRESS_BYTES])
{
	address_make(ADDRESS_PORT, port, ret_address);
}

void *play_alloc(struct play *play, size_t n)
{
	if (play->n_allocated == play->allocated_max) {
		play->allocated_max = play->allocated_max ? 2 * play->allocated_max : 64;
		play->allocated = realloc(play->allocated, play->allocated_max * sizeof(void *));
	}
	return play->allocated[play->n_allocated++] = calloc(1, n ? n : 1);
}

static struct wire *wire_new(struct play *play)
{
	struct wire *w = play_alloc(play, sizeof(*w));

	if (play->n_wires == 16384)
		abort();
	w->play = play;
	w->id = play->n_wires;
	w->may_in = w->may_out = true;
	w->to_rank.bytes = play_alloc(play, play->pipe_max);
	w->to_nbox.bytes = play_alloc(play, play->pipe_max);
	return play->wires[play->n_wires++] = w;
}

static size_t pipe_room(const struct play *play, const struct pipe *p)
{
	return play->pipe_max - p->n;
}

static void pipe_put(struct play *play, struct pipe *p, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->bytes[(p->at + p->n++) % play->pipe_max] = bytes[i];
}

static void pipe_take(struct play *play, struct pipe *p, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++, p->n--) {
		bytes[i] = p->bytes[p->at];
		p->at = (p->at + 1) % play->pipe_max;
	}
}

/* --- the sink ---------------------------------------------------------------------- */

static int sink_port(void *ctx, unsigned port, uint8_t ret[NCCL_ADDRESS_BYTES], struct err *err)
{
	play_port(port, ret);
	return 0;
}

static int sink_port_once(void *ctx, struct bootstrap_conn *c, uint8_t ret[NCCL_ADDRESS_BYTES],
			  struct err *err)
{
	struct wire *w = wire_new(ctx);

	w->conn = c;
	bootstrap_conn_set_sink(c, w);
	address_make(ADDRESS_ONCE, w->id, ret);
	return 0;
}

static int sink_dial(void *ctx, struct bootstrap_conn *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		     struct err *err)
{
	struct play *play = ctx;
	uint32_t words[3];
	struct wire *w, **at;

	if (play->dials_left == 0)
		return err_set(err, ENETUNREACH, "no way there");
	if (play->dials_left > 0)
		play->dials_left--;
	w = wire_new(play);
	w->conn = c;
	bootstrap_conn_set_sink(c, w);
	memcpy(words, address, sizeof(words));
	if (words[0] != ADDRESS_MARK || words[1] != ADDRESS_RANK || words[2] >= play->n_listeners ||
	    play->listeners[words[2]]->is_closed) {
		w->is_refused = true;
		return 0;
	}
	w->is_open = true;
	for (at = &play->listeners[words[2]]->waiting; *at; at = &(*at)->next_waiting)
		;
	*at = w;
	return 0;
}

static void sink_wake(void *ctx, struct bootstrap_conn *c)
{
	struct wire *w = bootstrap_conn_sink(c);

	w->may_in = w->may_out = true;
}

static void sink_hang_up(void *ctx, struct bootstrap_conn *c, bool is_now)
{
	struct wire *w = bootstrap_conn_sink(c);

	if (w->hang)
		abort();
	w->hang = is_now ? 2 : 1;
	w->may_out = true;
}

static void sink_refused(void *ctx, struct bootstrap_conn *c, const char *sentence)
{
	struct play *play = ctx;

	play->n_refused++;
}

static void sink_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	struct play *play = ctx;

	if (play->n_failed++ == 0)
		snprintf(play->sentence, sizeof(play->sentence), "%s", sentence);
}

static int sink_votes(void *ctx, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		      struct err *err)
{
	struct play *play = ctx;

	return play->votes ? play->votes(play, parent, color, key, err)
			   : err_set(err, ENOTSUP, "no votes");
}

static void sink_child(void *ctx, struct bootstrap_comm *parent, struct bootstrap_comm *child)
{
	struct play *play = ctx;

	play->children[play->n_children++] = child;
}

static void sink_record(void *ctx, struct bootstrap_comm *comm, const char *what, uint32_t rank,
			const uint8_t *record, size_t bytes)
{
	static const char *const names[] = {"contact", "peer", "graph", "split", "copied"};
	struct play *play = ctx;

	for (int i = 0; i < 5; i++)
		play->n_records[i] += !strcmp(what, names[i]);
}

static const struct bootstrap_sink sink = {
	.port = sink_port,
	.port_once = sink_port_once,
	.dial = sink_dial,
	.wake = sink_wake,
	.hang_up = sink_hang_up,
	.refused = sink_refused,
	.failed = sink_failed,
	.votes = sink_votes,
	.child = sink_child,
	.record = sink_record,
};

static int magic(void *ctx, uint64_t *ret)
{
	*ret = rng_u64(&((struct play *)ctx)->rng);
	return 0;
}

struct play *play_new(uint64_t seed)
{
	static const size_t chunks[] = {1, 3, 17, 200, 5000};
	struct play *play = calloc(1, sizeof(*play));

	rng_seed(&play->rng, seed, 0);
	play->chunk_max = chunks[below(&play->rng, 5)];
	play->pipe_max = 16 + below(&play->rng, 4000);
	play->dials_left = -1;
	play->b = bootstrap_new(&sink, play, magic);
	return play;
}

void play_free(struct play *play)
{
	bootstrap_free(play->b);
	for (unsigned i = 0; i < play->n_players; i++)
		free(play->players[i]->stack);
	for (size_t i = 0; i < play->n_allocated; i++)
		free(play->allocated[i]);
	free(play->allocated);
	free(play);
}

/* --- nbox's side of a wire --------------------------------------------------------- */

static size_t chunk(struct play *play, size_t most)
{
	size_t n = 1 + below(&play->rng, play->chunk_max);

	return n < most ? n : most;
}

static void wire_close(struct wire *w)
{
	w->to_rank.is_closed = true;
	bootstrap_conn_closed(w->conn);
	w->conn = NULL;
	w->play->has_moved = true;
}

static void wire_out(struct wire *w)
{
	uint8_t buf[8192];
	size_t n = chunk(w->play, pipe_room(w->play, &w->to_rank));

	if (!w->is_open || !w->may_out || n == 0)
		return;
	n = bootstrap_conn_out(w->conn, buf, n);
	if (n == 0) {
		w->may_out = false;
		if (w->hang == 1)
			wire_close(w);
		return;
	}
	pipe_put(w->play, &w->to_rank, buf, n);
	w->play->has_moved = true;
}

static void wire_in(struct wire *w)
{
	uint8_t buf[8192];
	size_t n = chunk(w->play, w->to_nbox.n), room;

	if (w->to_nbox.n == 0) {
		if (w->to_nbox.is_closed && !w->is_told) {
			w->is_told = w->play->has_moved = true;
			bootstrap_conn_ended(w->conn, 0);
		}
		return;
	}
	if (!w->may_in)
		return;
	room = bootstrap_conn_room(w->conn);
	if (room == 0) {
		w->may_in = false;
		return;
	}
	n = n < room ? n : room;
	pipe_take(w->play, &w->to_nbox, buf, n);
	bootstrap_conn_in(w->conn, buf, n);
	w->play->has_moved = true;
}

static void wire_move(struct wire *w)
{
	if (!w->conn)
		return;
	if (w->hang == 2 || (w->hang && (!w->is_open || w->to_nbox.is_closed))) {
		wire_close(w);
		return;
	}
	if (w->is_refused && !w->is_told) {
		w->is_told = w->play->has_moved = true;
		bootstrap_conn_ended(w->conn, ECONNREFUSED);
		return;
	}
	if (below(&w->play->rng, 2))
		wire_out(w);
	if (w->conn && !w->hang)
		wire_in(w);
	if (w->conn && w->hang != 2)
		wire_out(w);
}

/* --- players ----------------------------------------------------------------------- */

static void player_main(unsigned high, unsigned low)
{
	struct player *p = (struct player *)(((uintptr_t)high << 32) | low);

	p->run(p);
	p->is_done = true;
	p->play->has_moved = true;
	for (;;)
		swapcontext(&p->context, &p->play->back);
}

struct player *play_add(struct play *play, player_fn *run, void *arg, uint32_t rank)
{
	struct player *p = play_alloc(play, sizeof(*p));
	uintptr_t self = (uintptr_t)p;

	p->play = play;
	p->run = run;
	p->arg = arg;
	p->rank = rank;
	p->stack = malloc(STACK_BYTES);
	getcontext(&p->context);
	p->context.uc_stack.ss_sp = p->stack;
	p->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&p->context, (void (*)(void))player_main, 2, (unsigned)(self >> 32),
		    (unsigned)self);
	return play->players[play->n_players++] = p;
}

bool play_run(struct play *play)
{
	bool is_good = true;

	do {
		play->has_moved = false;
		for (unsigned i = 0; i < play->n_players; i++) {
			if (play->players[i]->is_done || play->players[i]->failed[0] ||
			    below(&play->rng, 4) == 0)
				continue;
			swapcontext(&play->back, &play->players[i]->context);
		}
		for (uint64_t times = 1 + below(&play->rng, 40); times > 0; times--) {
			for (unsigned i = 0; i < play->n_wires; i++)
				wire_move(play->wires[i]);
		}
		if (play->has_moved)
			continue;
		/* a player may have been left out */
		for (unsigned i = 0; i < play->n_players; i++) {
			if (!play->players[i]->is_done && !play->players[i]->failed[0])
				swapcontext(&play->back, &play->players[i]->context);
		}
	} while (play->has_moved);
	for (unsigned i = 0; i < play->n_players; i++)
		is_good &= play->players[i]->is_done;
	return is_good;
}

void play_explain(struct play *play)
{
	for (unsigned i = 0; i < play->n_players; i++) {
		if (!play->players[i]->is_done)
			fprintf(stderr, "# player %u (rank %u): %s\n", i, play->players[i]->rank,
				play->players[i]->failed[0] ? play->players[i]->failed : "waits");
	}
	fprintf(stderr, "# %u failed, %u refused: %s\n", play->n_failed, play->n_refused,
		play->sentence);
}

void player_fail(struct player *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->failed, sizeof(p->failed), fmt, ap);
	va_end(ap);
	p->play->has_moved = true;
	for (;;)
		swapcontext(&p->context, &p->play->back);
}

void player_wait(struct player *p)
{
	swapcontext(&p->context, &p->play->back);
}

struct listener *player_listen(struct player *p, uint8_t ret_address[NCCL_ADDRESS_BYTES])
{
	struct listener *l = play_alloc(p->play, sizeof(*l));

	l->id = p->play->n_listeners;
	p->play->listeners[p->play->n_listeners++] = l;
	address_make(ADDRESS_RANK, l->id, ret_address);
	return l;
}

void player_close_listener(struct player *p, struct listener *l)
{
	l->is_closed = true;
}

struct wire *player_connect(struct player *p, const uint8_t address[NCCL_ADDRESS_BYTES])
{
	struct wire *w = NULL;
	uint32_t words[3];

	memcpy(words, address, sizeof(words));
	if (words[0] == ADDRESS_MARK && words[1] == ADDRESS_PORT) {
		w = wire_new(p->play);
		w->conn = bootstrap_conn_accepted(p->play->b, words[2]);
		bootstrap_conn_set_sink(w->conn, w);
	} else if (words[0] == ADDRESS_MARK && words[1] == ADDRESS_ONCE &&
		   words[2] < p->play->n_wires) {
		w = p->play->wires[words[2]];
		if (w->is_open || !w->conn)
			player_fail(p, "port %u is closed", words[2]);
	} else if (words[0] == ADDRESS_MARK && words[1] == ADDRESS_RANK &&
		   words[2] < p->play->n_listeners) {
		/* straight from rank to rank: only to itself, in a split of one */
		player_fail(p, "a rank connects to another without nbox");
	}
	if (!w)
		player_fail(p, "no such address");
	w->is_open = true;
	p->play->has_moved = true;
	return w;
}

struct wire *player_accept(struct player *p, struct listener *l)
{
	struct wire *w;

	while (!l->waiting)
		player_wait(p);
	w = l->waiting;
	l->waiting = w->next_waiting;
	p->play->has_moved = true;
	return w;
}

long player_try_send(struct player *p, struct wire *w, const void *bytes, size_t n)
{
	size_t part = pipe_room(p->play, &w->to_nbox);

	if (!w->conn)
		return n ? -1 : 0;
	part = part < n ? part : n;
	pipe_put(p->play, &w->to_nbox, bytes, part);
	p->play->has_moved |= part > 0;
	return (long)part;
}

long player_try_recv(struct player *p, struct wire *w, void *bytes, size_t n)
{
	size_t part = w->to_rank.n < n ? w->to_rank.n : n;

	if (part == 0 && n && w->to_rank.is_closed)
		return -1;
	pipe_take(p->play, &w->to_rank, bytes, part);
	p->play->has_moved |= part > 0;
	return (long)part;
}

void player_send(struct player *p, struct wire *w, const void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		long part = player_try_send(p, w, (const uint8_t *)bytes + at, n - at);

		if (part < 0)
			player_fail(p, "wire %u is closed where %zu bytes are to be sent", w->id,
				    n - at);
		at += (size_t)part;
		if (at < n)
			player_wait(p);
	}
}

void player_recv(struct player *p, struct wire *w, void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		long part = player_try_recv(p, w, (uint8_t *)bytes + at, n - at);

		if (part < 0)
			player_fail(p, "wire %u is closed where %zu bytes are to come", w->id,
				    n - at);
		at += (size_t)part;
		if (at < n)
			player_wait(p);
	}
}

bool player_is_at_end(struct player *p, struct wire *w)
{
	while (w->to_rank.n == 0 && !w->to_rank.is_closed)
		player_wait(p);
	return w->to_rank.n == 0;
}

void player_close(struct player *p, struct wire *w)
{
	w->to_nbox.is_closed = true;
	w->to_rank.n = 0; /* nobody reads it */
	p->play->has_moved = true;
}
