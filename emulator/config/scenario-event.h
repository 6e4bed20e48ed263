/* An event of a scenario file as what-ifs. */
#pragma once

#include "base/err.h"
#include "config/scenario-list.h"

#define RAMP_STAGES 16 /* what-ifs of a ramp, besides the last */

struct scenario_event {
	/* "20steps", "30s"; "": not given */
	char at[32], lasts[32], every[32], ramp[32];
	struct scenario_list whats;
	struct scenario_list keys; /* "rack=3": what goes to the what-ifs */
};

/* "step 20", "20 steps" and "20steps" are one. Return: @buf; NULL: it is too long. */
char *scenario_span(const char *text, char *buf, size_t size);
/* Return: 0; -EINVAL with the sentence, without a place; -ENOMEM. */
int scenario_event_compile(const struct scenario_event *e, struct scenario_list *ret,
			   struct err *err);
