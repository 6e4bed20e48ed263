/* See op.h. */
#include "traffic/op.h"

#include <stdlib.h>

struct op *traffic_op_new(const struct op_key *key, uint32_t n_members)
{
	struct op *op = calloc(1, sizeof(*op) + n_members * sizeof(op->members[0]));

	if (!op)
		return NULL;
	op->key = *key;
	op->n_members = n_members;
	return op;
}

uint64_t traffic_op_bytes(const struct op *op)
{
	return sizeof(*op) + op->n_members * sizeof(op->members[0]);
}

void traffic_op_free(struct op *op)
{
	for (uint32_t i = 0; i < FLOW_CHANNELS_MAX; i++) {
		if (op->lanes[i])
			flow_source_unref(op->lanes[i]->top);
		free(op->lanes[i]);
	}
	free(op);
}

struct lane *traffic_op_lane(struct op *op, uint32_t channel)
{
	if (!op->lanes[channel])
		op->lanes[channel] = calloc(1, sizeof(struct lane));
	return op->lanes[channel];
}
