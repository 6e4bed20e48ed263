/* See model-error.h. */
#include "config/model-error.h"

#include <math.h>
#include <string.h>

#include "calibrate/load.h"

#define FITTED "fitted:file="

/* Measured time / nbox's, from the fabric alone: the 10th and the 90th percentile of the medians of
 * the set-ups (40 with sizes up to 64 KB, 49 between, 81 from 64 MB). ./scripts/bench published
 * prints them; tests/bench/README.md "Published figures", 2026-11-23. */
static const double published[MODEL_ENDS][BANDS] = {
	[MODEL_FAST] = {[BAND_SMALL] = 0.95, [BAND_BETWEEN] = 0.81, [BAND_LARGE] = 0.98},
	[MODEL_SLOW] = {[BAND_SMALL] = 1.29, [BAND_BETWEEN] = 1.58, [BAND_LARGE] = 1.14},
};
#define PUBLISHED_NODES 540

/* Predictions are off by @ratio of what was measured, at points held out. */
static void of_ratio(double ratio, const char *what, struct model_error *ret)
{
	ratio = fmin(ratio, 0.9);
	for (int i = 0; i < BANDS; i++) {
		ret->times[MODEL_FAST][i] = 1 / (1 + ratio);
		ret->times[MODEL_SLOW][i] = 1 / (1 - ratio);
	}
	snprintf(ret->source, sizeof(ret->source), "%.1f %%, %s", 100 * ratio, what);
}

static bool of_fitted(const struct config *c, struct model_error *ret)
{
	struct fitted f;
	struct fitted_range range;
	struct err err;
	int r = fitted_load(c->model + strlen(FITTED), &f, &err);

	if (r < 0)
		return false;
	r = fitted_range(&f, -1, &range);
	fitted_deinit(&f);
	if (r == 0)
		of_ratio(range.mape,
			 "the mean error of the fitted model's worst curve at points held out",
			 ret);
	return r == 0;
}

static void of_published(struct model_error *ret)
{
	const double(*t)[BANDS] = published;

	memcpy(ret->times, published, sizeof(published));
	ret->max_nodes = PUBLISHED_NODES;
	snprintf(
		ret->source, sizeof(ret->source),
		"four fifths of published set-ups take x%.2f to %.2f of the model's times up to 64 KiB, "
		"x%.2f to %.2f to 64 MiB, x%.2f to %.2f beyond",
		t[MODEL_FAST][BAND_SMALL], t[MODEL_SLOW][BAND_SMALL], t[MODEL_FAST][BAND_BETWEEN],
		t[MODEL_SLOW][BAND_BETWEEN], t[MODEL_FAST][BAND_LARGE], t[MODEL_SLOW][BAND_LARGE]);
}

/* No published set-up has NICs that go through sockets. */
static bool is_published(const struct fabric *f)
{
	for (size_t i = 0; f && i < f->n_classes; i++)
		if (!f->classes[i].is_preset || f->classes[i].nic == FABRIC_SOCKET)
			return false;
	return f;
}

bool model_error_of(const struct config *c, struct model_error *ret)
{
	bool is_nccl = strncmp(c->model, "nccl", 4) == 0 && !c->links;

	*ret = (struct model_error){.max_nodes = 0};
	if (strncmp(c->model, FITTED, strlen(FITTED)) == 0 && of_fitted(c, ret))
		return true;
	if (is_nccl && c->fabric && c->fabric->fit.n_points) {
		of_ratio(c->fabric->fit.error,
			 "the fitted fabric's median error at points held out", ret);
		return true;
	}
	if (is_nccl && is_published(c->fabric)) {
		of_published(ret);
		return true;
	}
	snprintf(
		ret->source, sizeof(ret->source),
		"how far the model %.64s is off here is not known: nbox fit measures it, and presets "
		"without sockets have published figures",
		c->model);
	return false;
}

double model_error_scale(const void *ctx, const struct nbox_op *op)
{
	const struct model_error_at *at = ctx;

	return at->error->times[at->end]
			       [sample_band(sample_size(op->kind, (double)op->bytes, op->n_ranks))];
}
