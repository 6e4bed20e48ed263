/* What repeats in the ops of a communicator, and whether that is a step of the job. A unit is what
 * repeats, a stretch a part where it does so without a break. */
#pragma once

#include "nbox/report/comm-ops.h"
#include "nbox/report/repeats.h"

/* A length of units and its stretches. */
struct step_units {
	uint64_t period, n_units;
	struct repeats_stretch *stretches; /* owned */
	uint64_t n;
};

enum step_verdict { STEPS, PARTS_OF_STEPS, NO_STEPS, UNCLEAR };

/* Units of @period ops, or of several times as many where those are the steps. Return: 0; -ENOMEM.
 * @ret: the caller's to deinit whatever *ret_verdict is. */
int step_units_judge(const struct comm_ops *o, uint64_t period, struct step_units *ret,
		     enum step_verdict *ret_verdict);
void step_units_deinit(struct step_units *u);
