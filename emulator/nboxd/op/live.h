/* What ops of nboxd have beside those of a replay (op/): links, an engine of messages, a record. */
#pragma once

#include "base/cleanup.h"
#include "engine/engine.h"
#include "engine/record-write.h"
#include "engine/totals.h"
#include "nboxd/comm/comm.h"
#include "nboxd/comm/failure.h"
#include "nboxd/op/payload.h"
#include "op/ops.h"

struct recorded;

struct live {
	struct ops ops;
	struct comms *comms;       /* borrowed */
	struct failures *failures; /* borrowed */
	struct engine *engine;
	struct recorded *recorded;    /* owned; NULL: all real ranks have a process */
	struct record_writer *record; /* NULL: no results directory */
	struct totals totals;         /* of the rows that it was given, or would be */
	struct payload payload;
	uint64_t n_points, n_messages_in, n_messages_out; /* since the start */
	uint64_t since_ns;                                /* of the ARRIVE that is looked at */
	bool is_slow_told;                                /* of the first op */
};

static inline struct live *live_of(struct ops *ops)
{
	return container_of(ops, struct live, ops);
}
