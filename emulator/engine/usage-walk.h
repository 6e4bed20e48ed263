/* The connections of an op, one by one, for a usage in the making. */
#pragma once

#include "contention/usage-maker.h"
#include "engine/price.h"

/* Whose connections are looked at. */
struct usage_walk {
	struct usage_maker *maker;
	const struct sched *s;
	const struct price *price; /* members and topology */
	struct routes *routes; /* NULL: each rank has a port inside its node, and one to others */
	bool is_own;
};

/* From comm rank @src to @dst. Return: 0; -ENOMEM. */
int usage_add_connection(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
			 double bytes);
