/* How much longer than the job says this rank computes: slow ranks and jitter. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PACE_MAX_SLOW 64

struct pace {
	uint32_t rank, world;
	size_t n_layers;
	struct {
		double factor;
		int64_t layer; /* -1: all, and the update */
	} slow[PACE_MAX_SLOW]; /* of this rank alone */
	size_t n_slow;
	double jitter; /* standard deviation over mean */
	uint64_t seed;
};

/* "3,5=1.5" or "3=1.5@LAYER". Return: 0; -EINVAL with the sentence; as units_ranks(). */
int pace_add_slow(struct pace *pace, const char *text, struct err *err);
/* "10%". Return: 0; -EINVAL with the sentence. */
int pace_set_jitter(struct pace *pace, const char *text, struct err *err);
/* What a segment's time is multiplied by: a function of seed, rank, iteration and stretch. @layer:
 * -1: the update's. */
double pace_factor(const struct pace *pace, uint64_t iteration, uint64_t stretch, int64_t layer);
