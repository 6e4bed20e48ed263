/* Calls of one post, all in one direction: how long their messages take by themselves, and what
 * they put on links. */
#pragma once

#include "contention/usage.h"
#include "engine/timing.h"
#include "op/table.h"

struct batch {
	struct post *post;
	bool is_plain, is_received;
	uint32_t n;
	uint32_t *index;         /* owned; of the post's calls */
	struct sched_p2p *calls; /* owned; of these, then others whose copies count for them */
	uint32_t n_all;          /* of @calls */
	uint64_t number;         /* for what is drawn */
	struct timing timing;
	double *ns; /* owned; what each takes by itself */
};

/* None yet. @number: for what is drawn. batch_deinit() is for after an error, too. Return: 0;
 * -ENOMEM with the sentence. */
int batch_init(struct batch *b, struct post *post, bool is_plain, uint64_t number, struct err *err);
void batch_deinit(struct batch *b);
/* @bytes of call @k. */
void batch_add(struct batch *b, uint32_t k, uint64_t bytes);
/* All of them have one peer. */
bool batch_has_one_peer(const struct batch *b);
/* Fills @b->timing and @b->ns: all begin together. Return: 0; negative errno with the sentence. */
int batch_solve(struct batch *b, struct err *err);
/* Of all. */
double batch_ns(const struct batch *b);
/* What all ranks of a group need, whatever its messages: no more than the group. */
double batch_extra_ns(const struct timing *t, bool is_plain);
/* When each rank is over, by its comm rank: it begins as it does in @run, with NULL at 0. Return:
 * as above. */
int batch_ends(const struct batch *b, const struct run *run, double *ends, struct err *err);
/* The solver's, until the next call. Return: as above. */
int batch_usage(const struct batch *b, struct usage **ret, struct err *err);
