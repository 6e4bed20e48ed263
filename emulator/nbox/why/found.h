/* Where the time of a run's iterations goes, and what could be won: the critical path of one
 * iteration of one rank, whom the ranks waited for, how much later ops may end, and the iteration
 * as it would be without this or that, re-timed. Times in nanoseconds of the virtual cluster. */
#pragma once

#include "replay/replay.h"

/* Communicators that are alike in size and axes. */
struct why_group {
	char name[128]; /* "world", "dp", "8 ranks" */
	uint32_t n_ranks, axes;
	bool *has; /* owned; by number, as struct ideal has it */
	uint32_t n_has;
};

enum why_kind {
	WHY_COMPUTED, /* on a stream */
	WHY_SLOWED,   /* there, by what-ifs */
	WHY_HOST,
	WHY_MODELLED, /* ops: by the model */
	WHY_INJECTED, /* by what-ifs */
	WHY_SHARED,   /* for links that other ops used */
	WHY_WAITED,   /* for a rank that came later */
	WHY_OTHER     /* before the first row */
};

/* Of the critical path. */
struct why_part {
	enum why_kind kind;
	uint32_t stream;    /* COMPUTED, SLOWED */
	uint32_t own;       /* the rank that the path is at; of ops: that of the run's */
	uint32_t template;  /* that computes as @own does; a real rank: itself */
	uint32_t group, op; /* of ops: of struct why; enum coll_kind */
	uint32_t rank;      /* WAITED: for whom */
	double ns;
};

struct why_exposed {
	uint32_t group;
	double ns; /* computation waited for its ops so long in that iteration */
};

struct why_late {
	uint32_t rank;
	double ns;  /* ops of a real rank waited for it so long in all, a mean iteration and rank */
	uint64_t n; /* ops of the run that it came last at, of all real ranks */
};

/* Of a real rank; what others do where its ops take longer is not asked. */
struct why_slack {
	uint32_t rank, group, op;
	double n; /* of its ops, in a mean iteration */
	/* Each may take so much more before the iteration does, to a thousandth of it. From the
	 * knee on more than half of what they take more shows, of what shows in the end: before it,
	 * the most is hidden. INFINITY: nothing waits for them */
	double ns, knee_ns;
};

/* Of a pipeline: what the schedule costs, by what its stages compute and messages take (nbox/pipe).
 */
struct why_pipeline {
	uint32_t n_stages, n_micro; /* 0: it is none */
	const char *schedule; /* borrowed, as is @overlap: whom messages keep from computing */
	const char *overlap;  /* of "on", "sender", "off" what comes nearest to median_ns */
	/* an iteration, by the schedule: as it is, and with messages beside computation */
	double ns, beside_ns;
	double signal_ns;       /* if messages take no time */
	double eager_ns;        /* by eager 1F1B, beside computation */
	double path_ns;         /* of messages, on the critical path */
	uint32_t more;          /* activations that the first stage keeps besides for that */
	uint64_t message_bytes; /* of the first stage's; an activation has as many at least */
};

struct why_won {
	char text[256];    /* what is taken away: "without slow:rank=3" */
	double ns;         /* the median iteration then */
	char refused[256]; /* why that is not known; "": it is */
};

/* All lists owned. */
struct why {
	uint32_t rank;
	bool has_ranks; /* the path goes over other ranks, too */
	bool has_steps; /* else the whole run is looked at */
	char steps_how[256];
	uint64_t n_timed;
	double median_ns;    /* of the timed iterations */
	double network_ns;   /* the same if computation takes no time; NAN: not known */
	double iteration_ns; /* the one that is looked at: sum of the parts */
	struct why_group *groups;
	struct why_part *parts; /* the longest first */
	struct why_exposed *exposed;
	struct why_late *late;
	struct why_slack *slacks;
	struct why_won *won;
	struct why_pipeline pipeline;
	uint32_t n_groups, n_parts, n_exposed, n_late, n_slacks, n_won;
	struct replay_told told;
};

void why_deinit(struct why *w);
/* What what-ifs add to the computation of @rank on the critical path. */
double why_slowed_ns(const struct why *w, uint32_t rank);
/* Its communicators have ops in the iterations: slacks, once they are known. */
bool why_group_is_used(const struct why *w, uint32_t group);
/* Of a communicator of a record; w->n_groups: of none. */
uint32_t why_group_of(const struct why *w, uint32_t number);
