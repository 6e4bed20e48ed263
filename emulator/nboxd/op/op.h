/* Collective ops: arrivals are collected and compared; at the last one the op is solved, the
 * members get RELEASE, and the engine plays its virtual ranks; with the last DONE
 * its rows go into the record.
 *
 *   collecting → live (in the engine) → ended, once each member is done → freed
 *
 * Point-to-point calls are not collective: p2p.h. Their frames come through here too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/border.h"
#include "engine/engine.h"
#include "engine/timing.h"
#include "nboxd/comm/comm.h"
#include "nboxd/op/ops.h"

/* Whom the engine plays an op for: its tag. */
struct engine_user {
	void (*send)(struct engine_user *user, uint32_t in, uint64_t index);
	void (*end)(struct engine_user *user);
};

/* What a call is, and what follows from it: made once, kept for the next equal
 * call of the communicator. */
struct call {
	struct call_key {
		uint32_t kind, dtype, root, zero;
		uint64_t count;
	} key;
	struct sched sched;
	bool has_border;
	struct border border;    /* owned */
	struct comm_member **to; /* owned; in-connection -> member; borrowed */
	uint64_t *first_reduce;  /* owned; out-connection -> offset into reduces */
	struct bitmap reduces;   /* out messages that the virtual receiver reduces */
	bool has_reduces;
	uint32_t n_users;         /* live ops */
	UT_hash_handle hh;        /* comm->calls, by what is the same in equal calls */
	struct call *prev, *next; /* comm->idle_calls, while n_users is 0 */
};

/* Finds or makes. Return: 0; negative errno with the sentence. */
int call_get(struct comm *c, const struct wire_arrive *a, struct call **ret, struct err *err);
/* Whether payload's buffers hold every message. Return: 0; -EFBIG with the sentence. */
int call_check_bytes(const struct comm *c, const struct sched *s, struct err *err);
void call_put(struct comm *c, struct call *call);
void call_free_all(struct comm *c);

struct op_member {
	bool has_arrived, is_done;
	struct wire_arrive arrive;
	uint64_t n_messages; /* that crossed the link */
};

struct op {
	struct engine_user user;
	struct comm *comm; /* borrowed */
	struct call *call; /* counted by n_users */
	uint64_t seq, number;
	uint32_t n_arrived, n_done;
	struct op_member *members; /* owned, as comm->real */
	uint64_t *n_out;           /* owned; arrived messages by out-connection */
	uint64_t first_ns;         /* wall clock of the first arrival here */
	uint64_t moved_ns;         /* wall clock when it last got on */
	uint64_t warn_ns;          /* next warning */
	bool is_live, has_ended;
	struct engine_op *engine_op;
	struct timing timing; /* owned */
	uint64_t start_ns, end_ns;
	double late_ns;    /* how much later than the last real member the start is */
	UT_hash_handle hh; /* comm->ops, by seq */
};

int op_on_arrive(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
/* Where the body of a MESSAGE goes (NULL: nowhere), and whether it may come.
 * Return: 0; 1: hold the link (the worker was refused). */
int op_on_message_header(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			 void **ret_body);
int op_on_message(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
int op_on_done(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
void op_free_all(struct comm *c);
/* The engine's sink. */
extern const struct engine_sink op_sink;
/* Warnings and bounds of waiting ops. Return: when to call again. */
uint64_t op_tick(struct ops *ops, uint64_t now_ns);
/* "op 12 (AllReduce of 4 MiB) of communicator 3 waits for ...". Return: @buf. */
char *op_describe(const struct op *op, uint64_t now_ns, char *buf, size_t size);
