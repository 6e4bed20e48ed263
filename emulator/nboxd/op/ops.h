/* What all ops of nboxd share. The server makes it and owns what it points to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "config/open-model.h"
#include "contention/overlap.h"
#include "engine/engine.h"
#include "engine/record-write.h"
#include "engine/solver.h"
#include "nboxd/comm/comm.h"
#include "nboxd/comm/failure.h"
#include "nboxd/op/payload.h"

struct ops {
	const struct config *config;
	const struct cluster *cluster;
	struct comms *comms;
	struct failures *failures;
	struct delay_chain *delay;
	struct solver *solver;
	struct engine *engine;
	struct overlap *overlap[2]; /* of ops that share the network; [1]: without what-ifs */
	struct timelines *timelines;
	double *ends;                 /* owned; room for rule.c */
	struct record_writer *record; /* NULL: no results directory */
	struct payload payload;
	uint64_t n_ops, n_points, n_messages_in, n_messages_out; /* since the start */
	uint32_t n_open_ops;
	struct asked asked; /* the collectives so far */
	/* of the first op: the summary counts them */
	bool is_below_bound_told, is_slow_told, is_lag_told, is_peers_told;
};
