/* How long a card looks up a batch in its tables of embeddings, by the bytes that move: the
 * heuristic that Lin et al. had before their learned model. Rows are rounded up to 32 bytes; what
 * the L2 cache has is read from there. */
#pragma once

#include "shard/tables.h"

struct lookup_card {
	double memory, l2; /* bytes per ns */
	double l2_bytes;
};

/* NVIDIA's A100, 40 GB: 1555 GB/s; 5120 bytes a clock of 1.41 GHz and 40 MiB of L2. */
extern const struct lookup_card lookup_a100;

/* What moves for one table. */
struct lookup_bytes {
	double memory, l2;
};

/* @n_bags: of the batch; each has the table's look-ups. With @is_backward what the gradients cost:
 * each row that was looked up is read and written. */
struct lookup_bytes lookup_bytes(const struct shard_table *t, double n_bags,
				 const struct lookup_card *card, int is_backward);
/* All tables of a card in one kernel: the slower of memory and cache. */
double lookup_ns(const struct lookup_bytes *sum, const struct lookup_card *card);
/* The share of look-ups that find their row in the L2. */
double lookup_hits(const struct shard_table *t, double n_bags, const struct lookup_card *card);
