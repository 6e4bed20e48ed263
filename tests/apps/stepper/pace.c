/* See pace.h. */
#include "stepper/pace.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/units.h"

#define FACTOR_MAX 1e6
#define LEAST 0.1 /* of a jittered segment's time */

static int take_layer(const char *text, size_t n_layers, int64_t *ret, struct err *err)
{
	uint64_t layer;

	if (units_count(text, &layer, err) < 0)
		return err_prefix(err, -EINVAL, "layer");
	if (layer >= n_layers)
		return err_set(err, EINVAL, "the layers of the job are 0 to %zu, and not %.60s",
			       n_layers - 1, text);
	*ret = (int64_t)layer;
	return 0;
}

int pace_add_slow(struct pace *pace, const char *text, struct err *err)
{
	CLEANUP(freep) char *copy = strdup(text);
	CLEANUP(freep) uint32_t *ranks = NULL;
	char *equals = copy ? strchr(copy, '=') : NULL, *at = equals ? strchr(equals, '@') : NULL;
	int64_t layer = -1;
	double factor;
	size_t n;
	int r;

	if (!copy)
		return err_set(err, ENOMEM, "no memory");
	if (!equals)
		return err_set(err, EINVAL, "'%.60s' is no slowness: write 3=1.5 or 3,5=1.5@LAYER",
			       text);
	*equals = '\0';
	if (at)
		*at = '\0';
	r = units_ranks(copy, pace->world, &ranks, &n, err);
	if (r == 0)
		r = units_ratio(equals + 1, &factor, err);
	if (r == 0 && !(factor > 0 && factor <= FACTOR_MAX))
		r = err_set(err, EINVAL, "'%.60s': a factor is more than 0 and at most %g", text,
			    FACTOR_MAX);
	if (r == 0 && at)
		r = take_layer(at + 1, pace->n_layers, &layer, err);
	if (r == 0 && pace->n_slow == PACE_MAX_SLOW)
		r = err_set(err, EINVAL, "more than %d are given", PACE_MAX_SLOW);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (ranks[i] != pace->rank)
			continue;
		pace->slow[pace->n_slow].factor = factor;
		pace->slow[pace->n_slow++].layer = layer;
	}
	return r;
}

int pace_set_jitter(struct pace *pace, const char *text, struct err *err)
{
	size_t n = strlen(text);
	double jitter;

	if (n == 0 || text[n - 1] != '%')
		return err_set(err, EINVAL, "'%.60s' has no unit: write a percentage, such as 10%%",
			       text);
	if (units_ratio(text, &jitter, err) < 0)
		return -EINVAL;
	pace->jitter = jitter;
	return 0;
}

/* Normally distributed, by Box and Muller. */
static double normal(uint64_t hash)
{
	double u = ((double)(hash >> 32) + 1) / 0x1p32; /* more than 0 */
	double angle = (double)(hash & UINT32_MAX) / 0x1p32 * 2 * M_PI;

	return sqrt(-2 * log(u)) * cos(angle);
}

double pace_factor(const struct pace *pace, uint64_t iteration, uint64_t stretch, int64_t layer)
{
	double factor = 1, jittered;
	uint64_t hash;

	for (size_t i = 0; i < pace->n_slow; i++)
		if (pace->slow[i].layer < 0 || pace->slow[i].layer == layer)
			factor *= pace->slow[i].factor;
	if (pace->jitter == 0)
		return factor;
	hash = rng_hash(rng_hash(rng_hash(pace->seed, pace->rank), iteration), stretch);
	jittered = 1 + pace->jitter * normal(hash);
	return factor * (jittered > LEAST ? jittered : LEAST);
}
