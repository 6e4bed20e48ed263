/* What the points of a sweep mean for who buys or rents the cluster: rate, scaling, price. A rank
 * has as many samples a step as in the run, so a world of twice the ranks has twice the samples. */
#pragma once

#include "nbox/sweep/prices.h"
#include "nbox/sweep/write.h"

enum plan_metric { PLAN_RATE, PLAN_STEP_MS, PLAN_EFFICIENCY, PLAN_HOUR, PLAN_MILLION };

struct plan_goal {
	const char *text; /* borrowed; NULL: none */
	enum plan_metric metric;
	bool is_least; /* else the most */
	double value;
};

struct plan_ask {
	const char *unit; /* "samples", "tokens" */
	double per_step;  /* of the run's whole world */
	struct prices prices;
	struct plan_goal goal;
};

struct plan_point {
	bool is_known;     /* else it failed, or has no steps */
	double ms, rate;   /* of a step, mean; samples a second */
	double efficiency; /* a rank's rate, of that in the smallest world with the same other
			      settings */
	double exposed;    /* of a step */
	char bottleneck[64];
	double hour, million; /* price of an hour, and of a million samples; NAN: not known */
	bool is_met, is_cheapest;
};

struct plan {
	const struct plan_ask *ask;
	const struct sweep_results *results;
	struct plan_point *list; /* owned */
	size_t n_met;
};

/* "2M", "1.5K", "300": Return: 0; -EINVAL. */
int plan_number(const char *text, double *ret);
/* "tokens/s >= 2M", "step_ms <= 300", "efficiency >= 0.9", "price/hour <= 500", "price/M < 2".
 * Return: 0; -EINVAL with the sentence. */
int plan_goal_parse(const char *text, const char *unit, struct plan_goal *ret, struct err *err);
/* Return: 0; negative errno with the sentence, such as of a point that no price fits. */
int plan_make(const struct plan_ask *ask, const struct sweep_results *results, struct plan *ret,
	      struct err *err);
void plan_deinit(struct plan *p);
void plan_print_table(const struct plan *p, FILE *to);
/* plan.json. @path: "-": standard output. Return: 0; negative errno with the sentence. */
int plan_write_json(const struct plan *p, const char *path, struct err *err);
/* plan.csv. Return: as above. */
int plan_write_csv(const struct plan *p, const char *path, struct err *err);
