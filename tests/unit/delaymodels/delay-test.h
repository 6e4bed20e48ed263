/* For the tests of delay models: opens chains from the build folder (MODEL_DIR)
 * and makes ops. */
#pragma once

#include <stdint.h>

#include "cmocka-all.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/delay.h"

#define MAX_WHAT_IFS 4

static const struct nbox_net test_net = {
	.intra_latency_ns = 1000,
	.intra_bytes_per_ns = 400,
	.inter_latency_ns = 5000,
	.inter_bytes_per_ns = 50,
};

static const struct topology test_world = {.n_nodes = 64, .gpus_per_node = 8};

/* Ranks 0..n_ranks-1 of the world. */
static inline int test_has_rank(const struct nbox_op *op, uint32_t world_rank)
{
	return world_rank < op->n_ranks;
}

static inline struct nbox_op test_op(uint32_t kind, uint32_t n_ranks, uint32_t n_nodes,
				     uint64_t bytes)
{
	return (struct nbox_op){
		.struct_size = sizeof(struct nbox_op),
		.kind = kind,
		.n_ranks = n_ranks,
		.n_nodes = n_nodes,
		.ranks_per_node = n_ranks / n_nodes,
		.elem_bytes = 4,
		.bytes = bytes,
		.net = &test_net,
		.has_rank = test_has_rank,
	};
}

/* @what_ifs ends with NULL; may be NULL. */
static inline int test_open(const char *model, const char *const *what_ifs, uint64_t seed,
			    struct delay_chain **ret, struct err *err)
{
	static const char *const dirs[] = {MODEL_DIR, NULL};
	size_t n = 0;

	while (what_ifs && what_ifs[n])
		n++;
	err->text[0] = '\0';
	return delay_open(model, NULL, what_ifs, n, &test_world, dirs, seed, ret, err);
}

static inline struct delay_chain *test_must_open(const char *model, const char *what_if,
						 uint64_t seed)
{
	const char *const what_ifs[] = {what_if, NULL};
	struct delay_chain *d = NULL;
	struct err err;

	if (test_open(model, what_ifs, seed, &d, &err) < 0)
		fail_msg("%s: %s", model, err.text);
	return d;
}

static inline void test_chain_freep(struct delay_chain **d)
{
	delay_free(*d);
}

#define CHAIN CLEANUP(test_chain_freep) struct delay_chain *

static inline double test_op_ns(struct delay_chain *d, const struct nbox_op *op)
{
	struct err err = {""};
	double ns = NAN;

	if (delay_op(d, op, &ns, &err) != 0)
		fail_msg("%s has no answer: %s", delay_describe(d), err.text);
	return ns;
}

static inline double test_extra_ns(struct delay_chain *d, const struct nbox_op *op, double so_far)
{
	struct err err = {""};
	bool is_ahead;
	double ns = NAN;

	if (delay_extra(d, op, so_far, false, &ns, &is_ahead, &err) != 0)
		fail_msg("%s: %s", delay_describe(d), err.text);
	return ns;
}

static inline double test_segment_ns(struct delay_chain *d, uint32_t rank, uint64_t number,
				     double ns)
{
	struct err err = {""};
	double ret = NAN;

	if (delay_segment(d, rank, number, 0, ns, &ret, &err) != 0)
		fail_msg("%s: %s", delay_describe(d), err.text);
	return ret;
}

static inline struct nbox_message test_message(uint32_t src, uint32_t dst, uint32_t hop,
					       uint32_t flows, uint64_t bytes)
{
	return (struct nbox_message){
		.struct_size = sizeof(struct nbox_message),
		.src = src,
		.dst = dst,
		.hop = hop,
		.flows = flows,
		.bytes = bytes,
	};
}

static inline struct nbox_delay test_message_ns(struct delay_chain *d, const struct nbox_op *op,
						const struct nbox_message *msg)
{
	struct nbox_delay delay = {NAN, NAN};
	struct err err = {""};

	if (delay_message(d, op, msg, false, &delay, &err) != 0)
		fail_msg("%s: %s", delay_describe(d), err.text);
	return delay;
}

/* Within @tolerance of the larger one. */
static inline void test_near(double got, double expect, double tolerance)
{
	if (!(fabs(got - expect) <= tolerance * fmax(fabs(got), fabs(expect))))
		fail_msg("%.17g is not %.17g (to %g)", got, expect, tolerance);
}
