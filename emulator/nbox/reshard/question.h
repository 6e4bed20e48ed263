/* Of a command line of nbox reshard: which tensor goes from where to where, over what, how. And the
 * plan for it. */
#pragma once

#include "base/options.h"
#include "mesh/mesh.h"

struct question {
	const char *tensor, *dtype, *src, *dst; /* borrowed; as typed */
	enum mesh_strategy strategy;
	enum turns_algo algo;
	struct mesh_net net; /* nic 0: not said */
	double budget_ns;    /* 0: the algorithm's */
	uint64_t seed;
	bool has_k, has_inside, has_seed; /* said */
};

struct answer {
	struct question of;
	struct mesh_reshard reshard;
	struct turns plan;
};

void question_init(struct question *q);
/* Return: 0; -EINVAL with the sentence. */
int question_take(struct question *q, const struct option_word *w, struct err *err);
/* Checks what is still missing, finds the unit tasks and plans them. Return: 0; -EINVAL with the
 * sentence; -ENOMEM. */
int question_answer(const struct question *q, struct answer *ret, struct err *err);
void answer_deinit(struct answer *a);
