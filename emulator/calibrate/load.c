/* See load.h. */
#include "calibrate/load.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/file.h"

int fitted_load(const char *path, struct fitted *ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	char sentence[FITTED_SENTENCE];
	size_t len;
	int r = file_read(path, FITTED_BYTES_MAX, &text, &len, err);

	if (r < 0)
		return r;
	if (fitted_parse(path, text, len, ret, sentence) < 0)
		return err_set(err, EINVAL, "%s", sentence);
	return 0;
}

int fitted_range(const struct fitted *f, int kind, struct fitted_range *ret)
{
	struct fitted_range range = {.min_ranks = UINT32_MAX, .min_bytes = INFINITY};

	for (size_t i = 0; i < f->n; i++) {
		const struct curve *c = &f->curves[i];
		double factor = curve_wire_factor(c->kind, c->n_ranks);

		if (kind >= 0 && c->kind != (uint32_t)kind)
			continue;
		range.mape = fmax(range.mape, c->mape);
		range.min_ranks = c->n_ranks < range.min_ranks ? c->n_ranks : range.min_ranks;
		range.max_ranks = c->n_ranks > range.max_ranks ? c->n_ranks : range.max_ranks;
		range.min_bytes = fmin(range.min_bytes, c->points[0].bytes / factor);
		range.max_bytes = fmax(range.max_bytes, c->points[c->n_points - 1].bytes / factor);
	}
	if (!range.max_ranks)
		return -ENOENT;
	*ret = range;
	return 0;
}
