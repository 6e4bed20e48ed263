/* Carries the what-ifs `fail` out (config/failure.h): aborts communicators, at a time or
 * at an op. A rank that is gone stays so: communicators that come later fail at their
 * first op. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct comms;
struct loop;

struct failures {
	struct comms *comms;        /* borrowed */
	struct loop *loop;          /* borrowed */
	struct failure_state *list; /* owned; one each of config->failures */
	uint64_t first_op_ns;       /* 0: none yet */
};

/* Return: 0 or -ENOMEM. */
int failures_init(struct failures *f, struct comms *comms, struct loop *loop);
void failures_deinit(struct failures *f);
/* An op of @kind begins: its first member has arrived. Return: whether the communicator
 * is dead now. */
bool failures_on_op(struct failures *f, struct comm *c, uint32_t kind);
/* Return: when to call again; UINT64_MAX: no need. */
uint64_t failures_tick(struct failures *f, uint64_t now_ns);
