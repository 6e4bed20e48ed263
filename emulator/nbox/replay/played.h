/* What is to be played, and what was: the types of play.h. */
#pragma once

#include "dfg/dfg.h"
#include "nbox/replay/costs.h"
#include "nbox/replay/job.h"

enum play_policy {
	PLAY_EVENT,
	PLAY_DPRO,
	/* Daydream's (Zhu et al., ATC 2020): one rank, an op takes its bytes over 85 % of the link,
	 * whatever the others do */
	PLAY_DAYDREAM
};

/* What would be otherwise. */
struct play_change {
	enum {
		CHANGE_COMM,
		CHANGE_COMPUTE,
		CHANGE_NAMED,
		CHANGE_RANK,
		CHANGE_PLAIN,
		CHANGE_STAGE
	} of;
	const char *name; /* CHANGE_NAMED: a pattern of a kernel's name, or a kind of op */
	/* CHANGE_RANK: world; its computation. CHANGE_PLAIN: that without what-ifs. CHANGE_STAGE:
	 * messages between stages. */
	uint32_t rank;
	double factor, add_ns;
};

/* All borrowed, and needed as long as the answer. */
struct play {
	const struct job *job;
	struct costs *costs;
	enum play_policy policy;
	const struct play_change *changes;
	uint32_t n_changes;
	double daydream_bytes_per_ns; /* of the link, in full */
	bool is_daydream_compat;      /* bytes taken for bits, as the released code does */
	bool without_latency;         /* of hops */
	bool without_queues;          /* no message waits for those of another op */
	bool without_stages;          /* none is sent by one stage to another */
	uint64_t most_hops; /* ops that have more than their share are one vertex; 0: a default */
};

enum play_device_kind { PLAY_STREAM, PLAY_LINK, PLAY_ADDER, PLAY_WHOLE };

struct play_device {
	enum play_device_kind kind;
	uint32_t rank,
		peer;    /* world ranks; PLAY_STREAM: of its stream's rank; peer UINT32_MAX: any */
	uint32_t number; /* lane, stream; PLAY_WHOLE: communicator */
};

#define PLAYED_OP (UINT32_C(1) << 31) /* in owner: hops of an op, else of a row */

struct played {
	struct dfg *g;              /* owned, as the lists */
	uint32_t *begin, *at, *end; /* vertices, by row: begins to compute; has computed; is over */
	uint32_t *owner;            /* by vertex: a row, or PLAYED_OP and an op */
	struct play_device *devices;
	uint32_t n_hops, n_by_hops,
		n_whole; /* SENDs; ops that have them; ops that are one vertex */
	double end_ns;
	uint32_t capacity_owner, capacity_devices;
};

void played_deinit(struct played *p);
/* When a row was reached: an op's arrival, or when computation began. */
double played_ns(const struct job *j, const struct played *p, uint32_t row);
/* Of daydream those of the rank that it looks at: the first. */
bool play_has_row(const struct play *p, uint32_t row);
