/* A worker process as nboxd sees it, without CUDA, NCCL or shim: speaks wire over a
 * link, and plays its side of an op with the player. Several live in one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "links/link.h"
#include "player/player.h"
#include "wire/wire.h"

#define FAKE_READY_MAX 32
#define FAKE_CALLS_MAX 16

struct fake_ready {
	struct wire_comm_ready m;
	struct wire_member members[16];
	uint32_t comm;
};

#define FAKE_RELEASED_MAX 2048

struct fake {
	struct link *link;
	bool is_closed;
	char why_closed[256];
	unsigned n[WIRE_TYPE_END]; /* frames that came */
	struct wire_hdr last[WIRE_TYPE_END];
	struct wire_welcome welcome;
	struct wire_release release;
	uint64_t released[FAKE_RELEASED_MAX]; /* the ops of the last ones; by number, round and
						 round */
	struct wire_move move;
	struct wire_tune tune;
	struct wire_text abort, error;
	uint8_t local_id[WIRE_ID_BYTES];
	unsigned n_aborts_before_id; /* that came before the last LOCAL_ID */
	char *status;                /* owned */
	struct fake_ready ready[FAKE_READY_MAX];
	unsigned n_ready;
	/* the op that is being played */
	struct player *player;
	struct sched sched;
	struct sched_p2p calls[FAKE_CALLS_MAX];
	uint32_t comm, rank;
	uint64_t seq;
	bool is_payload, has_release;
	bool is_onesided;      /* its next groups of calls are puts and waits; the test's */
	struct wire_took took; /* of its next collectives; the test's, as: */
	bool is_undecided;     /* they arrive without it */
	struct wire_arrive arrive;
	int64_t skew_ns;         /* how far its clock is ahead */
	uint64_t clock_error_ns; /* what it says of that */
	char player_error[256];
	uint8_t *body; /* owned; where bodies go to and come from */
	/* NULL: MESSAGEs are of the op that is being played; @body: where it lies. The test's. */
	void (*on_message)(struct fake *f, const struct wire_hdr *h, const uint8_t *body);
	struct {
		uint32_t peer;
		uint16_t lane;
		uint64_t index;
	} sent[65536];
	uint64_t n_sent, n_told;
	/* messages that came before the player posted their receives */
	struct {
		uint32_t peer;
		uint16_t lane;
		uint64_t index;
	} * kept; /* owned */
	size_t n_kept, kept_capacity;
};

/* A running nboxd. */
struct daemon {
	pid_t pid;
	char addr[256];
	char store[256]; /* HOST:PORT; empty: none */
	char also[512];  /* more addresses, with spaces between */
	int err_fd;      /* its stderr */
	char log[65536];
	size_t n_log;
};

/* @args: NULL-terminated, after the program's name. Fails the test when it does not
 * get ready. */
void daemon_start(struct daemon *d, const char *const *args);
/* The same; the arguments are the words of the line. */
void daemon_start_line(struct daemon *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Return: what waitpid() says; -1: still running after @seconds. */
int daemon_wait(struct daemon *d, int seconds);
/* SIGTERM; fails the test unless it ends with 0 within 10 s. */
void daemon_stop(struct daemon *d);
/* Whether its log has @text (reads what is there). */
bool daemon_said(struct daemon *d, const char *text);
/* The same, waited for; fails the test when it does not come. */
void daemon_will_say(struct daemon *d, const char *text);

/* An address to listen at, of @link: shm (a socket in @dir), tcp. With NBOX_TEST_RDMA, the
 * address of an RDMA device, always that: the same tests over rdma (tests/rdma). Valid
 * until the next call. */
const char *test_address(const char *link, const char *dir);

/* @token "": NBOX_TOKEN, if any. */
void fake_connect(struct fake *f, const char *addr, const char *token);
void fake_connect_raw(struct fake *f, const char *addr); /* without HELLO */
void fake_close(struct fake *f);
void fake_send(struct fake *f, enum wire_type type, uint32_t comm, uint32_t rank, uint64_t seq,
	       const void *body, uint64_t n);
void fake_init(struct fake *f, uint8_t id, uint32_t n_ranks, uint32_t rank, uint32_t world_rank);
/* Starts an op: ARRIVE and, where messages are exchanged, the player. */
void fake_arrive(struct fake *f, const struct fake_ready *ready, uint64_t seq, uint32_t kind,
		 uint64_t count, uint32_t root);
/* The same for a group of point-to-point calls, the @number-th of this rank. */
void fake_arrive_p2p(struct fake *f, const struct fake_ready *ready, uint64_t number,
		     const struct wire_p2p *calls, uint32_t n);
/* All its messages in and out, RELEASE here and its time come; sends DONE then. */
bool fake_op_is_over(struct fake *f);

/* Moves all links until @until(ctx) or 20 s. Return: what it said last. */
bool fakes_pump(struct fake *f, size_t n, bool (*until)(void *ctx), void *ctx);
/* Until each of the @n has got @count frames of @type. */
bool fakes_got(struct fake *f, size_t n, enum wire_type type, unsigned count);
/* Until each of the @n is closed. */
bool fakes_closed(struct fake *f, size_t n);
bool fakes_ops_over(struct fake *f, size_t n);
