/* See fake-session.h. */
#include "fake-session.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "links/link.h"
#include "shim/progress/known.h"
#include "shim/progress/note.h"
#include "shim/progress/play.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/progress/waiters.h"

static struct {
	pthread_mutex_t lock;
	struct note *first, **last;
	size_t n_posted;
	struct wire_welcome welcome;
	bool is_lost;
	struct sent_frame *frames;
	size_t n_frames, n_read, capacity;
	char failure[ERR_TEXT_MAX], note[WIRE_TEXT_MAX];
	bool registers;      /* as rdma does */
	uint64_t locks_most; /* 0: no bound */
	size_t n_registered;
	bool lands_in; /* registered memory */
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &g.first};

void session_reset(enum wire_exchange exchange)
{
	while (notes_run())
		;
	g.welcome = (struct wire_welcome){.exchange = exchange, .nccl = NCCL_FULL};
	g.is_lost = false;
	g.n_frames = g.n_read = g.n_posted = 0;
	g.failure[0] = g.note[0] = 0;
	g.registers = false;
	g.locks_most = g.n_registered = 0;
}

void session_register(uint64_t locks_most)
{
	g.registers = true;
	g.locks_most = locks_most;
}

size_t session_registered(void)
{
	return g.n_registered;
}

int session_send(enum wire_type type, uint32_t number, uint32_t rank, uint64_t seq,
		 const void *body, size_t bytes)
{
	(void)number;
	(void)rank;
	(void)seq;
	if (type == WIRE_NOTE && bytes == sizeof(struct wire_text))
		strcpy(g.note, ((const struct wire_text *)body)->text);
	return 0;
}

const char *session_note(void)
{
	return g.note;
}

struct comm *fake_comm(uint32_t number, uint32_t rank, uint32_t n_ranks)
{
	struct comm *c = calloc(1, sizeof(*c));

	c->refs = 1;
	c->number = number;
	c->rank = rank;
	c->n_ranks = n_ranks;
	return c;
}

struct comm *comm_ref(struct comm *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

struct comm *comm_unref(struct comm *c)
{
	if (c && atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
	return NULL;
}

void comm_fail(struct comm *c, int r, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&g.lock);
	va_start(ap, fmt);
	vsnprintf(g.failure, sizeof(g.failure), fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&g.lock);
	atomic_store_explicit(&c->async, r, memory_order_release);
}

const char *session_failure(void)
{
	return g.failure;
}

int known_abort(struct comm *c, int code, const char *text)
{
	(void)c;
	(void)code;
	(void)text;
	return 0;
}

static void run_kill(struct note *n)
{
	struct comm *c = container_of(n, struct comm, kill_note);

	traffic_get_events()->failed(c);
	comm_unref(c);
}

void play_kill(struct comm *c)
{
	if (atomic_exchange(&c->kill_posted, true))
		return;
	c->kill_note.run = run_kill;
	comm_ref(c);
	note_post(&c->kill_note, NOTE_WAKE);
}

/* --- notes ------------------------------------------------------------------------------ */

void note_post(struct note *n, enum note_wake wake)
{
	(void)wake;
	pthread_mutex_lock(&g.lock);
	n->next = NULL;
	*g.last = n;
	g.last = &n->next;
	g.n_posted++;
	pthread_mutex_unlock(&g.lock);
}

bool note_is_child(void)
{
	return false;
}

size_t notes_run(void)
{
	struct note *n, *next;
	size_t count = 0;

	pthread_mutex_lock(&g.lock);
	n = g.first;
	g.first = NULL;
	g.last = &g.first;
	pthread_mutex_unlock(&g.lock);
	for (; n; n = next, count++) {
		next = n->next;
		n->run(n);
	}
	return count;
}

size_t notes_posted(void)
{
	return g.n_posted;
}

/* --- the link ------------------------------------------------------------------------------ */

const struct wire_welcome *session_welcome(void)
{
	return &g.welcome;
}

struct link *session_link(void)
{
	return g.is_lost ? NULL : (struct link *)(void *)&g;
}

void session_lose(void)
{
	g.is_lost = true;
}

static int keep(const struct wire_hdr *h, const void *body, uint64_t cookie, bool is_lent)
{
	struct sent_frame *f;

	pthread_mutex_lock(&g.lock);
	if (g.n_frames == g.capacity) {
		g.capacity = g.capacity ? 2 * g.capacity : 64;
		g.frames = realloc(g.frames, g.capacity * sizeof(*g.frames));
	}
	f = &g.frames[g.n_frames++];
	*f = (struct sent_frame){.h = *h, .body = body, .cookie = cookie, .is_lent = is_lent};
	if (h->type == WIRE_FLOW)
		memcpy(&f->flow, body, sizeof(f->flow));
	pthread_mutex_unlock(&g.lock);
	return 0;
}

int link_send(struct link *l, const struct wire_hdr *h, const void *body, uint64_t cookie)
{
	(void)l;
	return keep(h, body, cookie, true);
}

int link_send_from(struct link *l, const struct wire_hdr *h, const void *body,
		   struct link_memory *m, uint64_t cookie)
{
	if (m != (g.registers ? (struct link_memory *)(void *)&g : NULL))
		abort();
	return link_send(l, h, body, cookie);
}

int link_register(struct link *l, const void *base, uint64_t bytes, struct link_memory **ret,
		  struct err *err)
{
	(void)l;
	(void)base;
	if (g.locks_most && bytes > g.locks_most)
		return err_set(err, ENOMEM, "%llu bytes cannot be registered",
			       (unsigned long long)bytes);
	*ret = g.registers ? (struct link_memory *)(void *)&g : NULL;
	g.n_registered++;
	return 0;
}

void link_unregister(struct link *l, struct link_memory *m)
{
	(void)l;
	if (m != (struct link_memory *)(void *)&g || !g.n_registered--)
		abort();
}

bool link_reads(const struct link *l)
{
	(void)l;
	return g.registers;
}

void link_lands_in(struct link *l, struct link_memory *m)
{
	(void)l;
	g.lands_in = m != NULL;
}

bool session_lands(void)
{
	return g.lands_in;
}

int link_send_copy(struct link *l, const struct wire_hdr *h, const void *body)
{
	(void)l;
	return keep(h, body, 0, false);
}

bool session_next(struct sent_frame *ret)
{
	bool is_there;

	pthread_mutex_lock(&g.lock);
	is_there = g.n_read < g.n_frames;
	if (is_there)
		*ret = g.frames[g.n_read++];
	pthread_mutex_unlock(&g.lock);
	return is_there;
}

/* --- ops --------------------------------------------------------------------------- */

void play_decided(struct op *op, const struct wire_took *took)
{
	op->took = took ? *took : (struct wire_took){.n_channels = 0};
	op->is_decided = true;
}
