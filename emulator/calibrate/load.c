/* See load.h. */
#include "calibrate/load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/file.h"

#define BYTES_MAX (4u << 20)

int fitted_load(const char *path, struct fitted *ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	char sentence[FITTED_SENTENCE];
	size_t len;
	int r = file_read(path, BYTES_MAX, &text, &len, err);

	if (r < 0)
		return r;
	if (fitted_parse(path, text, len, ret, sentence) < 0)
		return err_set(err, EINVAL, "%s", sentence);
	return 0;
}

char *fitted_describe(const char *path, uint32_t n_ranks, double most_bytes, char *buf, size_t size)
{
	struct fitted f;
	struct err err;
	double mape = 0, bytes = 0;
	uint32_t ranks = 0;
	size_t used;

	buf[0] = '\0';
	if (fitted_load(path, &f, &err) < 0)
		return buf;
	for (size_t i = 0; i < f.n; i++) {
		const struct curve *c = &f.curves[i];
		double factor = curve_wire_factor(c->kind, c->n_ranks);

		mape = fmax(mape, c->mape);
		ranks = c->n_ranks > ranks ? c->n_ranks : ranks;
		bytes = fmax(bytes, c->points[c->n_points - 1].bytes / factor);
	}
	used = (size_t)snprintf(buf, size,
				"calibrated: a mean error of %.1f %% on points held out, of the "
				"worst curve",
				100 * mape);
	if (used < size && n_ranks > ranks)
		used += (size_t)snprintf(buf + used, size - used,
					 "; extrapolated %.3g times beyond measured ranks",
					 (double)n_ranks / ranks);
	if (used < size && most_bytes > bytes)
		snprintf(buf + used, size - used, "; extrapolated %.3g times beyond measured bytes",
			 most_bytes / bytes);
	fitted_deinit(&f);
	return buf;
}
