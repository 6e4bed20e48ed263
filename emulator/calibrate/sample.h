/* Measured times of collectives, by what they were measured with. Sizes are nccl-tests'; in a
 * curve's points they are wire bytes: those that one rank sends or receives, without what it keeps
 * (curve_wire_factor()). */
#pragma once

#include "base/err.h"
#include "fitted/curve.h"
#include "schedule/coll.h"

struct sample {
	uint32_t kind, n_ranks, n_nodes;
	uint32_t proto; /* enum nbox_proto; CURVE_ANY_PROTO: not known */
	double bytes;   /* nccl-tests' size, > 0 */
	double ns;      /* > 0 */
};

struct samples {
	struct sample *list; /* owned; zeros at first */
	size_t n, capacity;
};

/* Of sizes: latency decides the time of small ones, bandwidth that of large ones. */
enum { BAND_SMALL, BAND_BETWEEN, BAND_LARGE, BANDS };
int sample_band(double bytes);

/* The size of a call of @bytes, which count one rank's part where ranks have parts (struct
 * nbox_op). */
double sample_size(uint32_t kind, double bytes, uint32_t n_ranks);

void samples_deinit(struct samples *s);
/* Return: 0; -ENOMEM. */
int samples_add(struct samples *s, const struct sample *one);
/* Sizes of which one is up to so many times the other are one: a log of a year has no more than
 * some thousand. */
#define SAMPLE_NEAR 1.01
/* Sorts by kind, ranks, nodes, protocol and bytes; of those that were measured more than once keeps
 * the median. */
void samples_merge(struct samples *s);
/* The next group of merged samples that differ in bytes and time alone, as a curve with points and
 * without a form. @from: 0 at first. Return: 1: *ret is the caller's, by curve_deinit(); 0: there
 * are no more; -ENOMEM. */
int samples_next(const struct samples *s, size_t *from, struct curve *ret);
