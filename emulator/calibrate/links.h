/* Fits the links of a fabric instead of a curve, so that sizes and ranks that were not measured
 * follow: a factor for each of five numbers, found by what a predictor says of the measured ops.
 * What then differs by the size of an op alone, and not by its ranks, is no link's fault: a network
 * has protocols, and sizes that suit them less. These are the residuals. */
#pragma once

#include "base/err.h"
#include "calibrate/residual.h"
#include "calibrate/sample.h"

enum link_number {
	LINK_NET_LATENCY, /* from NIC to NIC through one switch */
	LINK_HOP_LATENCY, /* of each switch more */
	LINK_NIC_BANDWIDTH,
	LINK_GPU_BANDWIDTH,
	LINK_GPU_LATENCY,
	LINK_NUMBERS
};

extern const char *const link_number_names[LINK_NUMBERS];

/* @ret_ns: of each of @n samples, with the numbers times @factors and @residuals. Return: 0;
 * negative errno with the sentence. */
typedef int (*links_predict)(void *ctx, const double factors[LINK_NUMBERS],
			     const struct residuals *residuals, const struct sample *samples,
			     size_t n, double *ret_ns, struct err *err);

enum { LINKS_ALL = BANDS, LINKS_BANDS };

extern const char *const links_band_names[LINKS_BANDS];

/* Of the absolute errors of one half, as ratios. */
struct links_error {
	double median, worst;
	size_t n;
};

struct links_fit {
	double factors[LINK_NUMBERS]; /* fitted to all */
	struct residuals residuals;   /* none where they do not help at what is held out */
	/* at every second size; after a fit to the others */
	struct links_error before[LINKS_BANDS], after[LINKS_BANDS];
};

void links_fit_deinit(struct links_fit *fit);

/* @most: of each factor; a link carries no more than its data sheet says. @samples: sorted. Every
 * second size of each group is held out. Return: 0; -EINVAL with the sentence: fewer than four
 * samples; that of the predictor; -ENOMEM. */
int links_fit(const struct samples *samples, const double most[LINK_NUMBERS], links_predict predict,
	      void *ctx, struct links_fit *ret, struct err *err);
