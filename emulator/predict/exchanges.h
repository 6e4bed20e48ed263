/* Which ops of a trace's ranks meet: the parts of a collective, the two ends of a message. A group
 * of sends and receives is one op of its rank and has an end of each message, but where it sends to
 * all and receives from all: then the k-th of a communicator at each rank are one collective. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

struct exchange_end {
	uint32_t message;
	bool is_send;
};

struct exchange_message {
	uint32_t send, receive; /* ops of the trace; TRACE_NONE: no trace has it */
	uint32_t src, dst;      /* ranks of the world */
	uint64_t bytes;         /* 0: not known */
	/* From when it is sent until it is there, of those between these ranks with as many bytes
	 * the shortest; NAN: an end is missing. */
	double ns;
};

/* All owned. */
struct exchanges {
	uint32_t *joins; /* by op: number of its collective; TRACE_NONE: it is none, or alone */
	uint32_t n_joins;
	uint32_t *first_end; /* by op, and behind the last one: in ends */
	struct exchange_end *ends;
	struct exchange_message *messages;
	uint32_t n_messages;
};

/* NCCL_BUFFSIZE: a send that fits is over at once. */
#define EXCHANGE_BUFFER_BYTES (UINT64_C(4) << 20)

/* The k-th send from one rank to another in a communicator is the k-th receive there; where the
 * trace does not know the calls of ops, it says itself what meets. Return: 0; -ENOMEM. */
int exchanges_find(const struct trace *t, struct exchanges *ret);
void exchanges_deinit(struct exchanges *x);

/* The share of a message that the buffers take. */
double exchange_taken(const struct exchange_message *m);
/* Collectives, sends and receives. */
bool exchange_is_one(const struct trace_op *op);
