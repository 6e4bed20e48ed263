/* The messages of one stage of a recorded pipeline, in the order in which its host asked for them.
 */
#pragma once

#include <stdbool.h>

#include "pipe/job.h"
#include "replay/rows.h"

enum passes_way {
	PASSES_TO_NEXT,
	PASSES_TO_PREVIOUS,
	PASSES_FROM_PREVIOUS,
	PASSES_FROM_NEXT,
	PASSES_WAYS
};

struct passes_list {
	const struct record_op **ops; /* owned list */
	uint32_t *rows;               /* owned; of the graph */
	uint32_t n;
};

struct passes {
	struct passes_list way[PASSES_WAYS];
	bool is_recorded;
};

/* Of rank @world_rank, whose neighbours are @previous and @next; -1: there is none. Return: 0;
 * -ENOMEM. */
int passes_find(const struct rows_graph *g, uint32_t world_rank, int64_t previous, int64_t next,
		struct passes *ret);
void passes_deinit(struct passes *p);
/* Forward passes of the first iteration before a backward pass, by who waits for whom; @n_micro:
 * all are. Only where it has a next stage. Return: -ENOMEM. */
int64_t passes_peak(const struct rows_graph *g, const struct passes *p, uint32_t n_micro);

/* How long a forward and a backward pass take; NAN: it does not show. */
struct passes_times {
	double forward_ns, backward_ns, both_ns, update_ns;
};

/* By the virtual times of @p, which is stage @stage of @job. Return: 0; -ENOMEM. */
int passes_times(const struct passes *p, const struct pipe_job *job, uint32_t stage,
		 struct passes_times *ret);
