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

/* The links of a connection between comm ranks, and what they carry, bytes/ns. @routes: as below.
 * Return: their number; -EHOSTUNREACH without a path. */
int usage_links(const struct price *p, const struct routes *routes, uint32_t src, uint32_t dst,
		uint16_t lane, uint64_t ret_links[FABRIC_PATH_MAX],
		double ret_bytes_per_ns[FABRIC_PATH_MAX]);
/* What crosses them for each byte of the op: a protocol's flags, too. */
double usage_wire_factor(const struct price *p);
/* From world rank @src to @dst, which need not be members, over the fabric by their nearest NICs;
 * not the op's own. Return: 0; -ENOMEM. */
int usage_add_near(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
		   double bytes);
/* From comm rank @src to @dst. Return: 0; -ENOMEM. */
int usage_add_connection(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
			 double bytes);
