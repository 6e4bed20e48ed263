/* Ops that take their time on devices: a data-flow graph, played in virtual time. A device, such as
 * a GPU's stream, a stage of a pipeline or a cable, does one op at a time; an op is queued there
 * once all ops before it are over, and each edge's lag has passed. Of those queued the lowest
 * priority goes first, then who was ready first, then the lower number. Times are nanoseconds from
 * the beginning, or any other unit: nothing here counts in them.
 *
 * This is the replayer of dPRO (Hu et al., MLSys 2022, section 4.3), with two orders of events. */
#pragma once

#include <stdint.h>

#define DFG_NONE UINT32_MAX     /* no op */
#define DFG_PARALLEL UINT32_MAX /* as a device: nobody waits for his turn */
#define DFG_PRIORITIES (1 << 15)

enum dfg_policy {
	DFG_EVENT, /* what starts first is played first: causal */
	/* The paper's: the device whose last op ended first is served next. It may serve a device
	 * before an op is known that would have been ready there earlier. */
	DFG_DPRO
};

struct dfg_op {
	uint32_t device, priority;
	double ns;                /* >= 0 */
	double ready, start, end; /* by the last dfg_play() */
	uint32_t by; /* the op that it started right after: the last one that it waited for, or the
			one before it on its device; DFG_NONE: it waited for nobody */
};

struct dfg;

struct dfg *dfg_new(void); /* NULL: no memory */
struct dfg *dfg_free(struct dfg *g);
/* Return: 0, and the number of the new device or op; -ENOMEM. */
int dfg_add_device(struct dfg *g, uint32_t *ret);
/* @priority: below DFG_PRIORITIES */
int dfg_add_op(struct dfg *g, uint32_t device, double ns, uint32_t priority, uint32_t *ret);
/* @after may start @lag >= 0 after the end of @before. Return: 0; -ENOMEM. */
int dfg_add_edge(struct dfg *g, uint32_t before, uint32_t after, double lag);
/* Another duration, for the next dfg_play(). */
void dfg_set_ns(struct dfg *g, uint32_t op, double ns);

/* Plays all ops, from nothing. O((ops + edges) log ops). Return: 0; -ELOOP: some wait for each
 * other, *ret_op is one of them; -ENOMEM. */
int dfg_play(struct dfg *g, enum dfg_policy policy, uint32_t *ret_op);
uint32_t dfg_ops(const struct dfg *g); /* how many */
uint32_t dfg_devices(const struct dfg *g);
/* Borrowed, until an op is added. */
const struct dfg_op *dfg_op(const struct dfg *g, uint32_t op);
/* How long the device has been at work. */
double dfg_busy(const struct dfg *g, uint32_t device);
/* When the last op ends; 0: there is none. *ret_last, unless it is NULL: that op, the lowest number
 * of several, or DFG_NONE. Back from it by struct dfg_op's by goes the critical path. */
double dfg_end(const struct dfg *g, uint32_t *ret_last);
