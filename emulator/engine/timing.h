/* The times of an op: when it ends, and when each border message may be released. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/border.h"
#include "nbox-delaymodel.h"

enum solve_how { SOLVE_OP, SOLVE_SYMMETRY, SOLVE_SIM };
const char *solve_how_name(uint32_t how); /* "model", "symmetry", "simulated"; "?" */

struct timing {
	double model_ns;  /* what the base model alone gives */
	double end_ns;    /* with all what-ifs but without arrivals; >= 0 */
	double shared_ns; /* of end_ns: how long a group of calls waits for links that ranks share
			   */
	double extra_ns;  /* of end_ns: what what-ifs add to the whole op; may be negative */
	bool is_ahead;    /* ... as part of it has crossed the network before the op begins */
	enum solve_how how;
	bool is_near; /* SOLVE_SYMMETRY: not exactly what a simulation says, but near to it */
	uint32_t is_of_model;  /* model_ns is what the model says of the whole op, not of the
				  schedule's messages */
	double bound_ns;       /* physical lower bound: bytes over the port's bandwidth */
	char bound_where[64];  /* the link that says so; "": no fabric */
	struct nbox_plan plan; /* the scheduler's; n_lanes is 0 without one */
	/* Release time of message i of in-connection c of the border is at[offset[c] + i],
	 * relative to the op's start, never later than end_ns. NULL without a border. Owned. */
	double *at;
	uint64_t *offset; /* n_in + 1 */
	uint32_t n_in;
};

void timing_deinit(struct timing *t);
double timing_message_ns(const struct timing *t, uint32_t in_conn, uint64_t index);

/* Room for the release times of the border's in-messages. Return: 0; -ENOMEM with the sentence, as
 * below. */
int timing_alloc(struct timing *t, const struct border *b, struct err *err);
/* Message i of the k of a connection at (i + 1) / k of the op's time. */
int timing_spread(struct timing *t, const struct border *b, struct err *err);
