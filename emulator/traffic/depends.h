/* What the messages of an op's flows depend on, by its algorithm; traffic.h says how. */
#pragma once

#include "traffic/nodes.h"
#include "traffic/op.h"

struct depends {
	struct nodes nodes;
	uint32_t n_trees; /* channels of NCCL's search for trees; 0: not told */
	bool has_tree;    /* flows of trees were said: that stays */
	/* [nodes.n_real][FLOW_CHANNELS_MAX] rank + 1 that sends on the rings, where it was seen;
	 * owned */
	uint32_t *exits;
};

/* @f's algorithm is one that is played. Return: 0; -EPROTO with the sentence. */
int depends_supports(const struct traffic_flow *f, const char *name, struct err *err);
/* @f, which is in its lane, fits the others there, and its peer's node is a neighbour in its
 * algorithm. Return: 0; -EPROTO with the sentence. */
int depends_check(const struct depends *d, const struct flow *f, const char *name, struct err *err);
/**
 * depends_bind - once the op's kind is known: checks @f against it, finds its source or its users
 *
 * Return: 0; -EPROTO with the sentence; -ENOMEM.
 */
int depends_bind(struct depends *d, struct flow *f, struct err *err);

/* @f is of an op that has passed everywhere and is forgotten: nobody waited for its messages, which
 * are empty. */
void depends_bind_late(struct flow *f);

/* Receive @f depends on a flow that was not declared so far, and perhaps is none. */
bool depends_is_unsure(const struct flow *f);
/* The op is over at receive @f, and there was none. */
void depends_learn_lack(struct depends *d, const struct flow *f);

struct depends_need {
	uint32_t node, peer_node;
	const struct flow *flow; /* between those; NULL: not declared so far */
	uint64_t index;
};

/* Is there what the next message of receive @f is made of? @ret: set where not. */
bool depends_met(const struct flow *f, struct depends_need *ret);
