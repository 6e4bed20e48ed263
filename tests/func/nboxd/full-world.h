/* For tests of full mode: nboxd with 4 nodes of 2, of which node 0 is real, up to the id of NCCL's
 * communicator; and what comes of NCCL's messages. */
#pragma once

#include <string.h>

#include "base/clock.h"
#include "fake-world.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"

#define NCCL "2.28.9"
#define N_RANKS 8u
#define N_REAL 2u
/* Of one AllReduce by ring and Simple, on one channel: two messages a step. */
#define N_SLICES 2
#define COUNT 1024 /* of an op */
#define N_MESSAGES (2 * (N_RANKS - 1) * N_SLICES)

static struct daemon d;

/* The communicator that all here is of: the first, or another one. */
static unsigned on;

/* What came by MESSAGE, of each rank. */
static struct came {
	unsigned n, n_identity;
	uint64_t bytes;
	uint8_t first[N_MESSAGES]; /* byte of each */
	bool is_identity[N_MESSAGES];
	bool is_wrong; /* another order, place or op than asked for */
	uint64_t at_ns[N_MESSAGES];
} came[N_REAL];

static inline void on_message(struct fake *from, const struct wire_hdr *h, const uint8_t *body)
{
	struct came *c = &came[from - f];

	if (h->comm != from->ready[on].comm)
		return;
	if (h->index != c->n || h->rank != from->ready[0].m.rank || c->n == N_MESSAGES) {
		c->is_wrong = true;
		return;
	}
	c->is_identity[c->n] = h->flags & WIRE_MESSAGE_IDENTITY;
	c->n_identity += c->is_identity[c->n];
	c->at_ns[c->n] = clock_now_ns();
	c->first[c->n++] = h->body_bytes ? body[0] : 0;
	c->bytes += h->body_bytes;
}

static inline void tell_job(struct fake *w, const char *version)
{
	fake_send(w, WIRE_JOB, 0, 0, 0, version, strlen(version) + 1);
}

/* 4 nodes. */
static inline void start_on(const char *world, const char *link, const char *exchange,
			    const char *more)
{
	memset(came, 0, sizeof(came));
	daemon_start_line(&d, "--nodes 4 %s --nccl full --exchange %s --addr %s%s%s", world,
			  exchange, address(link), more[0] ? " " : "", more);
	for (uint32_t i = 0; i < N_REAL; i++) {
		fake_connect(&f[i], d.addr, "");
		f[i].on_message = on_message;
	}
	assert_true(fakes_got(f, N_REAL, WIRE_WELCOME, 1));
	assert_int_equal(f[0].welcome.nccl, NCCL_FULL);
	assert_int_equal(f[0].welcome.exchange,
			 strcmp(exchange, "payload") == 0 ? EXCHANGE_PAYLOAD : EXCHANGE_MESSAGES);
	for (uint32_t i = 0; i < N_REAL; i++)
		f[i].welcome.exchange = EXCHANGE_NONE; /* its ops have no messages of nbox's */
}

static inline void start(const char *link, const char *exchange, const char *more)
{
	start_on("--gpus-per-node 2 --real 0-1", link, exchange, more);
}

static inline void check_in(void)
{
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_init(&f[i], 7, N_RANKS, i, i);
	assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, 1));
}

static inline void promise(void)
{
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_send(&f[i], WIRE_MEET, f[0].ready[0].comm, i, 0, NULL, 0);
}

/* Up to the id. */
static inline void start_comm(const char *link, const char *exchange, const char *more)
{
	static const uint8_t none[WIRE_ID_BYTES];

	start(link, exchange, more);
	for (uint32_t i = 0; i < N_REAL; i++)
		tell_job(&f[i], NCCL);
	check_in();
	promise();
	assert_true(fakes_got(f, N_REAL, WIRE_MEET, 1));
	assert_true(fakes_got(f, N_REAL, WIRE_LOCAL_ID, 1));
	assert_memory_not_equal(f[0].local_id, none, sizeof(none));
	assert_memory_equal(f[0].local_id, f[1].local_id, sizeof(none));
}

static inline void stop(void)
{
	close_all(N_REAL);
	daemon_stop(&d);
}

/* Everything that was sent to @rank before has come, and what it sent was looked at. */
static inline void settle(uint32_t rank)
{
	unsigned n = f[rank].n[WIRE_PING];
	struct wire_ping ping = {0};

	fake_send(&f[rank], WIRE_PING, 0, 0, 0, &ping, sizeof(ping));
	assert_true(fakes_got(&f[rank], 1, WIRE_PING, n + 1));
}

static inline void aborted(size_t n, const char *why)
{
	assert_true(fakes_got(f, n, WIRE_ABORT, 1));
	for (size_t i = 0; i < n; i++)
		if (!strstr(f[i].abort.text, why))
			fail_msg("'%s' was told, not '%s'", f[i].abort.text, why);
}

static inline const char *status(void)
{
	unsigned n = f[0].n[WIRE_STATUS];

	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_STATUS, n + 1));
	return f[0].status;
}

static inline bool is_said(void *text)
{
	return strstr(status(), text) != NULL;
}

/* --- NCCL's messages --------------------------------------------------------------- */

static inline void queue_head(uint32_t rank, enum wire_type type, uint64_t index, const void *body,
			      uint64_t n)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, n);
	h.comm = f[0].ready[on].comm;
	h.rank = rank;
	h.peer = rank == 0 ? N_RANKS - 1 : N_REAL;
	h.index = index;
	assert_int_equal(link_send_copy(f[rank].link, &h, body), 0);
}

static inline void send_head(uint32_t rank, enum wire_type type, uint64_t index, const void *body,
			     uint64_t n)
{
	queue_head(rank, type, index, body, n);
	link_progress(f[rank].link);
}

/* The ring's exit is rank 1, its entry rank 0. */
static inline void send_flow_of(uint32_t rank, uint64_t message_bytes)
{
	struct wire_flow m = {.is_send = rank == 1,
			      .algorithm = PLUGIN_RING,
			      .protocol = PLUGIN_SIMPLE,
			      .n_channels = 1,
			      .n_messages = N_MESSAGES,
			      .message_bytes = message_bytes};

	send_head(rank, WIRE_FLOW, 0, &m, sizeof(m));
}

static inline void send_flow(uint32_t rank)
{
	send_flow_of(rank, 4096);
}

/* The summary will say so. */
static inline void is_noted(const char *out, const char *what)
{
	char path[192], text[4096];
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/notes.txt", out);
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[n] = '\0';
	if (!strstr(text, what))
		fail_msg("notes.txt lacks '%s': %s", what, text);
}

static inline void arrive(uint64_t count)
{
	for (uint32_t i = 0; i < N_REAL; i++) {
		f[i].took = (struct wire_took){PLUGIN_RING, PLUGIN_SIMPLE, 1, 0};
		fake_arrive(&f[i], &f[i].ready[on], 0, COLL_ALLREDUCE, count, 0);
	}
}

static inline bool all_came(void *ctx)
{
	(void)ctx;
	return came[0].n == N_MESSAGES || came[0].is_wrong || f[0].n[WIRE_ABORT];
}

static inline bool is_due(void *ctx)
{
	(void)ctx;
	return f[0].has_release && f[1].has_release && clock_now_ns() >= f[0].release.end_ns &&
	       clock_now_ns() >= f[1].release.end_ns;
}

static inline void finish(void)
{
	struct wire_done done = {.release_ns = f[0].release.end_ns};

	assert_true(fakes_pump(f, N_REAL, is_due, NULL));
	for (uint32_t i = 0; i < N_REAL; i++) {
		done.due_ns = done.release_ns = done.local_done_ns = f[i].release.end_ns;
		fake_send(&f[i], WIRE_DONE, f[0].ready[on].comm, i, 0, &done, sizeof(done));
	}
	settle(0);
	settle(1);
}
