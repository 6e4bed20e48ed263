/* An op at a communicator's real ranks, with its flows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "traffic/flow.h"
#include "traffic/span.h"
#include "traffic/traffic.h"

/* Collectives are one op at all real ranks; sends and receives each rank's own. */
#define OP_ALL_RANKS UINT32_MAX

struct op_key {
	uint64_t seq;
	uint32_t rank; /* or OP_ALL_RANKS */
	uint32_t zero;
};

struct lane { /* a channel of a collective */
	struct flow *sends, *receives;
	struct flow_source *top; /* of a tree whose root is virtual: all that goes down */
	struct flow_sizes sizes;
};

struct op {
	struct op_key key;
	UT_hash_handle hh;
	struct traffic_call call;
	bool has_call;   /* of any rank */
	uint32_t n_open; /* flows whose messages are not all through */
	uint32_t n_members, n_passed;
	struct flow *flows;
	struct lane *lanes[FLOW_CHANNELS_MAX]; /* owned; NULL: nothing on that channel */
	struct op_member {
		struct span span;
		bool has_call, has_passed;
	} members[]; /* of all real ranks, or of one */
};

struct op *traffic_op_new(const struct op_key *key, uint32_t n_members); /* NULL: no memory */
/* It has no flows any more, and is in no table. */
void traffic_op_free(struct op *op);
uint64_t traffic_op_bytes(const struct op *op); /* that it takes, without its flows */
struct lane *traffic_op_lane(struct op *op, uint32_t channel); /* NULL: no memory */
