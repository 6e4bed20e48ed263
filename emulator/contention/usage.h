/* What an op puts on the links of the network, over its whole time. */
#pragma once

#include <stdint.h>

struct usage_link {
	uint64_t link;      /* its number; a rank's port where there is no fabric */
	double capacity;    /* bytes/ns */
	double own_bytes;   /* of the op itself */
	double bytes;       /* those and what its images put there */
	double connections; /* that carry all of them */
};

/* Counted references; never changed once it is shared. Not thread-safe. */
struct usage {
	uint32_t n, n_refs;
	uint64_t number;           /* a hash of the links: what is equal is one user to all */
	struct usage_link links[]; /* sorted by link */
};

struct usage *usage_ref(struct usage *u);
struct usage *usage_unref(struct usage *u); /* NULL; takes NULL */
