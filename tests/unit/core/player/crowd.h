/* For tests of the player: n players of one op with real data, and an obvious computation of the
 * result. Values are 64-bit integers, so that the order of a sum does not matter. */
#pragma once

#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <stdbool.h>

#include "player/player.h"

#define CROWD_MAX 8

struct crowd {
	uint32_t n;
	struct sched sched[CROWD_MAX]; /* equal, but for the calls of SENDRECV */
	struct sched_p2p *p2p[CROWD_MAX];
	struct player *player[CROWD_MAX];
	struct player_data data[CROWD_MAX];
	int64_t *input[CROWD_MAX], *output[CROWD_MAX], *expected[CROWD_MAX];
	uint64_t n_input[CROWD_MAX], n_output[CROWD_MAX]; /* words */
	bool in_place, has_pre, has_post;
	struct rng rng;
	void *transport;
};

/* A random op: kind, algorithm, ranks, sizes, channels, slices, root, in place or
 * not, with pre and post or not. */
void crowd_init(struct crowd *c, uint64_t seed);
void crowd_deinit(struct crowd *c);
void crowd_check(const struct crowd *c);
void crowd_print(const struct crowd *c);
