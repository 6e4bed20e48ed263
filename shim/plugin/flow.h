/* What NCCL's proxy will send to a rank in a call, or receive from it, on one channel: NCCL's
 * profiler tells of it before its messages, and which message of it a request is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/plugin/calls.h"

#define FLOW_STEPS 8 /* of NCCL's: so many messages are under way at most */

struct flow;
struct flow_step {
	enum handle_kind kind; /* HANDLE_STEP */
	struct flow *of;
	uint64_t index;
};

struct flow {
	enum handle_kind kind; /* HANDLE_FLOW */
	struct bound *of;
	struct flow *next_free; /* under the lock of @of */
	struct flow_step steps[FLOW_STEPS];

	/* Constant while it lives. */
	uint64_t seq;
	uint32_t peer;
	uint16_t channel;
	bool is_send;
	bool is_direct; /* a send or receive, not of a collective's algorithm */
	uint32_t algorithm, protocol, n_channels;
	uint64_t n_messages;
	uint64_t chunk_bytes; /* as NCCL tells: of data */
	uint32_t slice_steps; /* steps of the connection in a message */
	uint32_t event_steps; /* of NCCL's events in a message */
	uint64_t identity;    /* as fill_identity() has it */

	uint64_t n_posted; /* of the proxy's thread */
	bool is_told;      /* the progress thread's: nboxd knows it */
};

/* Refuses a communicator, by any thread: it fails with the sentence. */
void flow_refuse(struct bound *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What an event of the profiler says. */
struct flow_event {
	int pid, channel, peer, n_steps, chunk_bytes, is_send;
	bool is_by_steps; /* of the connection; else by messages */
};
/* Return: NULL: it is refused. */
struct flow *flow_begin(struct call *call, const struct flow_event *e);
void flow_end(struct flow *f); /* its memory is @of's */
/* Of the message that NCCL's event names by @step. */
struct flow_step *flow_step(struct flow *f, int step);

/* Inside of isend or irecv: which message NCCL's profiler has told of last on this thread; once.
 * NULL: none. */
struct flow_step *flow_take_step(void);
void flow_leave_step(struct flow_step *s);
/* NCCL 2.26 is there: its plugin_event_fn answers with another message, once an op of the proxy has
 * memory that an earlier one had. So isend and irecv take what was told, as before 2.26. */
void flow_set_told(bool is);
bool flow_is_told(void);
/* NCCL 2.27 is there: it tells only of the first of several sends or receives that share memory,
 * and its plugin_event_fn reads through what it has not set for the others. */
void flow_set_may_lack(void);
bool flow_may_ask(const void *parent); /* of isend, irecv */
