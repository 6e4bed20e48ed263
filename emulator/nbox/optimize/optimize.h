/* A plan of buckets for a recorded run or for layers of a file, beside what frameworks do. */
#pragma once

#include "buckets/memory.h"
#include "nbox/optimize/cost.h"
#include "nbox/optimize/found.h"
#include "nbox/optimize/gradients.h"
#include "nbox/retime/retime.h"

enum optimize_pass {
	PASS_TENSORS = 1, /* tsfs */
	PASS_PIECES = 2,  /* part */
	PASS_OPS = 4,     /* opfs */
	PASS_MEMORY = 8   /* mem */
};

#define OPTIMIZE_PIECES 8 /* that are tried */

struct optimize_asked {
	const char *run;             /* the word; NULL: there are layers alone */
	struct recorded *recorded;   /* loaded; NULL: the same */
	const struct config *config; /* finished; NULL: an op takes alpha_ns + bytes / rate */
	const struct layers *layers; /* NULL: none */
	double alpha_ns, bytes_per_ns;
	unsigned passes; /* enum optimize_pass */
	bool is_dpro;    /* by Algorithm 1; else the best there is */
	double budget;   /* bytes of memory; INFINITY: as many as it takes */
	const char *models;
};

struct optimize_row {
	char name[96];
	struct buckets_plan plan; /* owned */
	double ns;                /* by the recurrence: of recorded steps the median */
	double retimed_ns;        /* 0: not re-timed */
	const char *why_not;      /* re-timed, where others are; NULL: it is, too */
};

static inline double optimize_step_ns(const struct optimize_row *r)
{
	return r->retimed_ns > 0 ? r->retimed_ns : r->ns;
}

#define OPTIMIZE_ROWS 16

struct optimized {
	struct found found; /* of a record */
	struct gradients gradients;
	struct optimize_row rows[OPTIMIZE_ROWS];
	uint32_t n_rows;
	uint32_t before, planned;   /* of the rows: as it is; the plan, which is the best of them */
	uint32_t fixed, first, ddp; /* DDP's own limits, its best first one, its best one */
	uint64_t cap, first_cap;    /* bytes: DDP's best limit; of the first bucket alone */
	struct buckets_decision *log; /* owned; of Algorithm 1; NULL: none */
	struct memory_way way;        /* parts 0: nobody asked */
	uint64_t n_asked;             /* sizes that the model was asked for */
};

/* Return: 0; -EINVAL: what was asked for does not fit the run, or a model refuses; another negative
 * errno; with the sentence. */
int optimize(const struct optimize_asked *asked, struct optimized *ret, struct err *err);
void optimized_deinit(struct optimized *o);
