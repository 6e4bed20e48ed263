/* See repeats.h.
 *
 * How candidates are found: each window of w numbers votes for the distance to the last window
 * before it with the same contents. w is 1, 2, 4, ...: one of these is at least as long as the
 * repeated unit and less than twice as long. Where the unit repeats, each window of that length
 * votes for the unit's length.
 */
#include "nbox/report/repeats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"

#define UNITS_MAX 16 /* different units of one length; further ones are not looked at */

struct last_seen { /* a hash table, open addressing */
	uint64_t key;
	uint64_t at; /* index of the window + 1; 0: the slot is free */
};

struct candidate {
	uint64_t period, votes;
};

/* Return: the distance to the last window with the contents @key; 0: there is none. */
static uint64_t distance_to_last(struct last_seen *table, uint64_t mask, uint64_t key, uint64_t at)
{
	uint64_t i = rng_hash(0, key) & mask, distance;

	while (table[i].at && table[i].key != key)
		i = (i + 1) & mask;
	distance = table[i].at ? at + 1 - table[i].at : 0;
	table[i] = (struct last_seen){key, at + 1};
	return distance;
}

static int by_votes(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->votes != b->votes)
		return a->votes > b->votes ? -1 : 1;
	return a->period < b->period ? -1 : a->period > b->period;
}

static int by_number(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* At least one vote for each 64 numbers: less is chance. */
static int choose(const uint64_t *votes, uint64_t n, uint64_t *ret_periods)
{
	CLEANUP(freep) struct candidate *all = calloc(n + 1, sizeof(*all));
	uint64_t n_all = 0;

	if (!all)
		return -ENOMEM;
	for (uint64_t d = 1; d <= n / 2; d++)
		if (votes[d] && votes[d] >= n / 64)
			all[n_all++] = (struct candidate){d, votes[d]};
	qsort(all, n_all, sizeof(*all), by_votes);
	if (n_all > REPEATS_PERIODS_MAX)
		n_all = REPEATS_PERIODS_MAX;
	for (uint64_t i = 0; i < n_all; i++)
		ret_periods[i] = all[i].period;
	qsort(ret_periods, n_all, sizeof(*ret_periods), by_number);
	return (int)n_all;
}

int repeats_periods(const uint64_t *seq, uint64_t n_seq, uint64_t ret_periods[REPEATS_PERIODS_MAX])
{
	uint64_t n = n_seq < REPEATS_SAMPLE ? n_seq : REPEATS_SAMPLE, n_table = 2;

	while (n_table < 2 * n)
		n_table *= 2;

	CLEANUP(freep) uint64_t *windows = calloc(n + 1, sizeof(*windows));
	CLEANUP(freep) uint64_t *votes = calloc(n + 1, sizeof(*votes));
	CLEANUP(freep) struct last_seen *table = calloc(n_table, sizeof(*table));

	if (!windows || !votes || !table)
		return -ENOMEM;
	memcpy(windows, seq + (n_seq - n) / 2, n * sizeof(*seq));
	for (uint64_t w = 1; 3 * w <= 2 * n; w *= 2) {
		memset(table, 0, n_table * sizeof(*table));
		for (uint64_t i = 0; i + w <= n; i++)
			votes[distance_to_last(table, n_table - 1, windows[i], i)]++;
		for (uint64_t i = 0; i + 2 * w <= n; i++)
			windows[i] = rng_hash(windows[i], windows[i + w]);
	}
	return choose(votes, n, ret_periods);
}

struct unit {
	uint64_t key;
	double weight;
};

/* Finds the first stretch that begins at *@at or later, and sets *@at to its end. Return: false
 * when there is none.
 */
static bool next_stretch(const uint64_t *seq, uint64_t n, uint64_t period, uint64_t *at,
			 struct repeats_stretch *ret)
{
	for (uint64_t first = *at; first + 2 * period <= n;) {
		uint64_t i = first + period;

		while (i < n && seq[i] == seq[i - period])
			i++;
		if (i - first >= 2 * period) {
			*ret = (struct repeats_stretch){first, i - first};
			*at = i;
			return true;
		}
		/* seq[i] differs from seq[i - period], so no stretch holds both: the next one
		 * begins behind i - period */
		first = i - period + 1;
	}
	return false;
}

/* A key of the unit. Units with the same numbers in another order have the same key: rotations, and
 * now and then others. */
static uint64_t key_of(const uint64_t *seq, const struct repeats_stretch *s, uint64_t period)
{
	uint64_t key = 0;

	for (uint64_t i = 0; i < period; i++)
		key += rng_hash(1, seq[s->first + i]);
	return key;
}

/* Adds the stretch to the weights of the units. */
static void weigh(struct unit *units, uint32_t *n_units, uint64_t key, double weight)
{
	uint32_t i = 0;

	while (i < *n_units && units[i].key != key)
		i++;
	if (i == UNITS_MAX)
		return;
	if (i == *n_units)
		units[(*n_units)++] = (struct unit){.key = key};
	units[i].weight += weight;
}

int64_t repeats_stretches(const uint64_t *seq, uint64_t n, uint64_t period, const double *weights,
			  struct repeats_stretch **ret)
{
	struct unit units[UNITS_MAX];
	struct repeats_stretch s, *list;
	uint32_t n_units = 0, best = 0;
	uint64_t n_all = 0, n_best = 0, at = 0;

	while (next_stretch(seq, n, period, &at, &s)) {
		weigh(units, &n_units, key_of(seq, &s, period),
		      weights[s.first + s.n] - weights[s.first]);
		n_all++;
	}
	for (uint32_t i = 1; i < n_units; i++)
		best = units[i].weight > units[best].weight ? i : best;
	list = calloc(n_all + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (at = 0; next_stretch(seq, n, period, &at, &s);)
		if (key_of(seq, &s, period) == units[best].key)
			list[n_best++] = s;
	*ret = list;
	return (int64_t)n_best;
}

uint64_t repeats_above(const double *values, uint64_t n, double limit, double *ret_gap)
{
	uint64_t last = 0, k = 0, n_large = 0, n_same = 0;
	double sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (values[i] <= limit)
			continue;
		if (n_large++ && k == 0)
			k = i - last;
		n_same += n_large > 1 && i - last == k;
		sum += values[i];
		last = i;
	}
	if (k < 2 || n_same < 3 || 10 * n_same < 9 * (n_large - 1) || 10 * n_large * k < 8 * n)
		return 0;
	*ret_gap = sum / (double)n_large;
	return k;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

double repeats_median(double *values, uint64_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n ? values[n / 2] : 0;
}

/* How far @v are off the median of their place in periods of @k, all together. *ret_medians has
 * them,
 * @buf room for n. */
static double spread(const double *v, uint64_t n, uint64_t k, double *ret_medians, double *buf)
{
	double sum = 0;

	for (uint64_t place = 0; place < k; place++) {
		uint64_t m = 0;

		for (uint64_t i = place; i < n; i += k)
			buf[m++] = v[i];
		ret_medians[place] = repeats_median(buf, m);
		for (uint64_t i = 0; i < m; i++)
			sum += fabs(buf[i] - buf[m / 2]);
	}
	return sum;
}

uint64_t repeats_wave(const double *values, uint64_t n)
{
	double v[REPEATS_WAVE_MAX], buf[REPEATS_WAVE_MAX], medians[REPEATS_WAVE_MAX / 3 + 1];
	double mean = 0, all;

	n = n < REPEATS_WAVE_MAX ? n : REPEATS_WAVE_MAX;
	for (uint64_t i = 0; i < n; i++)
		mean += values[i] / (double)n;
	if (!(mean > 0))
		return 0;
	for (uint64_t i = 0; i < n; i++)
		v[i] = log(1 + values[i] / mean); /* one that is long by chance counts little */
	all = spread(v, n, 1, medians, buf);
	for (uint64_t k = 2; k <= n / 3; k++) {
		uint64_t few = k / 4 > 1 ? k / 4 : 1;

		if (spread(v, n, k, medians, buf) > 0.3 * all)
			continue;
		qsort(medians, k, sizeof(*medians), by_value);
		/* a quarter apart, at least */
		return k >= 4 && medians[k - 1 - few] - medians[few] > 0.15 ? k : 0;
	}
	return 0;
}
