/* The threads of a pipeline's channel in an order in which each comes behind those that it receives
 * from. The channels of one rail have the same. */
#pragma once

#include "engine/pipe-lines.h"
#include "engine/symmetry-cost.h"

struct pipe_plan {
	uint32_t each;    /* threads a rank */
	uint32_t n;       /* threads that have steps */
	uint32_t *thread; /* owned: rank * each + number, in order */
	uint32_t *first;  /* owned, n + 1: the thread's connections in the following arrays */
	uint32_t *sender; /* owned: thread, as above */
	uint8_t *hop;     /* owned: a class */
	uint32_t n_conns;
	uint32_t class[PIPE_CLASSES]; /* the caller's numbers for them */
	uint32_t n_classes;
	uint32_t *sample; /* owned: a rank whose thread of that number has steps, or UINT32_MAX */
};

/* Return: 0; SYMMETRY_NONE: no pipeline; -ENOMEM. */
int pipe_plan_new(const struct symmetry *y, uint32_t channel, struct pipe_plan **ret);
struct pipe_plan *pipe_plan_free(struct pipe_plan *p);

/* The plan's number of a class; PIPE_CLASSES: there are too many. */
uint32_t pipe_plan_class(struct pipe_plan *p, uint32_t class);
/* The thread that sends on a connection of channel @channel; UINT32_MAX: none. */
uint32_t pipe_plan_sender(const struct pipe_plan *p, const struct sched *s, uint32_t channel,
			  uint32_t src, uint32_t dst, uint16_t lane);
