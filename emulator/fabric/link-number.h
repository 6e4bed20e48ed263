/* How a link's number is made: kind, two numbers of what it joins, direction. */
#pragma once

#include <stdint.h>

enum link_kind {
	LINK_GPU,   /* a: node, b: GPU */
	LINK_PCIE,  /* a: node, b: GPU; out: to the NIC */
	LINK_NIC,   /* a: node, b: NIC */
	LINK_LEAF,  /* a: leaf; b: 0: all its cables up or down as one; else one of them */
	LINK_POD,   /* a: pod; the same to the core */
	LINK_GROUP, /* a: dragonfly's group, b: the group that it goes to; out */
	LINK_CABLE, /* a: cable; out: from its first switch */
	LINK_KINDS
};
enum link_direction { LINK_OUT, LINK_IN, LINK_UP = LINK_OUT, LINK_DOWN = LINK_IN };

static inline uint64_t link_number(enum link_kind kind, uint32_t a, uint32_t b, unsigned direction)
{
	return (uint64_t)kind << 57 | (uint64_t)a << 25 | (uint64_t)b << 1 | direction;
}

static inline enum link_kind link_kind(uint64_t link)
{
	return (enum link_kind)(link >> 57);
}

static inline uint32_t link_a(uint64_t link)
{
	return (uint32_t)(link >> 25);
}

static inline uint32_t link_b(uint64_t link)
{
	return (uint32_t)(link >> 1) & 0xffffff;
}

static inline enum link_direction link_direction(uint64_t link)
{
	return (enum link_direction)(link & 1);
}

struct fabric;

/* link.c: how many cables of a NIC's rate a leaf has up, and as many down. */
uint32_t link_cables(const struct fabric *f, uint32_t leaf);
/* Bytes/ns. */
double link_rate(const struct fabric *f, enum link_kind kind, uint32_t a, uint32_t b,
		 unsigned direction);
/* Bytes/ns of a row's leaves, up or down: where there are rails, those of the NICs @nics, as bits,
 * since the others carry nothing. */
double link_row_rate(const struct fabric *f, uint32_t row, uint32_t nics, unsigned direction);
