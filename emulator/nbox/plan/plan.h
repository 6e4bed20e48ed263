/* What the points of a sweep mean for who buys or rents the cluster: rate, scaling, price. A rank
 * has as many samples a step as in the run, so a world of twice the ranks has twice the samples.
 * Each figure is there three times: by the model, and where the model is as far off as it may be,
 * to the fast and to the slow side. */
#pragma once

#include "nbox/plan/goal.h"
#include "nbox/plan/look.h"
#include "nbox/plan/prices.h"
#include "nbox/sweep/notes.h"
#include "nbox/sweep/write.h"

enum plan_side { PLAN_MODEL, PLAN_FAST, PLAN_SLOW, PLAN_SIDES };

struct plan_ask {
	const char *unit; /* "samples", "tokens" */
	double per_step;  /* of the run's whole world */
	struct prices prices;
	struct plan_goal goal;
};

struct plan_point {
	bool is_known; /* else it failed, or has no steps */
	bool has_band; /* else only PLAN_MODEL is filled */
	/* By metric: samples a second; a mean step; a rank's rate, of that in the smallest world
	 * with the same other settings; the price of an hour, and of a million samples. NAN: not
	 * known */
	double figures[PLAN_SIDES][PLAN_METRICS];
	double exposed;   /* of a step */
	struct look look; /* owned */
	uint32_t marks;   /* struct notes */
};

#define PLAN_NONE ((size_t)-1)

struct plan {
	const struct plan_ask *ask;
	const struct sweep_results *results;
	struct plan_point *list; /* owned */
	struct notes notes;
	size_t n_met;
	char device[384]; /* the run's: that its computation is modelled, in words; "": a GPU */
	bool is_chosen;   /* there is a goal, or there are prices */
	size_t cheapest[PLAN_SIDES]; /* of the points that meet the goal; PLAN_NONE: none does */
};

/* Before anything is played. Return: 0; -ENOENT with the sentence: a point that no price fits. */
int plan_check_prices(const struct prices *prices, const struct sweep *s, struct err *err);
/* Return: 0; negative errno with the sentence. */
int plan_make(const struct plan_ask *ask, const struct sweep_results *results, struct plan *ret,
	      struct err *err);
void plan_deinit(struct plan *p);
bool plan_is_met(const struct plan *p, size_t point, enum plan_side side);
/* Whether the chosen point still is where the network is as slow as the model may be wrong, in a
 * sentence; "": none is chosen. Return: @buf. */
char *plan_verdict(const struct plan *p, char *buf, size_t size);
/* "2.13 M". Return: @buf. */
char *plan_large(double x, char *buf, size_t size);
