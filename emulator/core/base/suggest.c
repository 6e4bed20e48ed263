/* See suggest.h. */
#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define WORD_MAX 64 /* longer names are not compared */

/* Optimal string alignment: counts insertions, deletions, substitutions and swaps of neighbours.
 * Another case costs nothing. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned rows[3][WORD_MAX + 1];
	size_t i, j;

	for (j = 0; j <= n_b; j++)
		rows[0][j] = (unsigned)j;
	for (i = 1; i <= n_a; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3];
		const unsigned *above2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (j = 1; j <= n_b; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);
			unsigned best = above[j - 1] + (ca != cb);

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]) && above2[j - 2] + 1 < best)
				best = above2[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[n_a % 3][n_b];
}

const char *suggest(const char *word, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t i, n_word = strlen(word);
	unsigned best_cost = 0;

	if (n_word == 0 || n_word > WORD_MAX)
		return NULL;
	for (i = 0; i < n; i++) {
		size_t n_cand = strlen(candidates[i]);
		size_t longer = n_cand > n_word ? n_cand : n_word;
		unsigned d, cost, is_short = 0;

		if (n_cand > WORD_MAX)
			continue;
		d = distance(word, n_word, candidates[i], n_cand);
		if (n_word >= 3 && n_cand >= 3 && d > 0 &&
		    strncasecmp(word, candidates[i], n_word < n_cand ? n_word : n_cand) == 0) {
			is_short = 1; /* one abbreviates the other, the user's more likely */
			d = n_word < n_cand ? 1 : d < 2 ? d : 2;
		}
		/* near: at most a third of the letters, but one is always allowed
		 * where at least one other fits */
		if (d > longer / 3 && !(d == 1 && longer > 1))
			continue;
		/* among equals, the whole word, then the first */
		cost = 2 * d + is_short;
		if (!best || cost < best_cost) {
			best = candidates[i];
			best_cost = cost;
		}
	}
	return best;
}

/* Are the letters of @a, at least two, the first in common, in @b in this order? */
static bool abbreviates(const char *a, const char *b)
{
	if (!a[0] || !a[1] || tolower((unsigned char)*a) != tolower((unsigned char)*b))
		return false;
	for (; *a && *b; b++)
		a += tolower((unsigned char)*a) == tolower((unsigned char)*b);
	return !*a;
}

const char *suggest_long(const char *word, const char *const *candidates, size_t n)
{
	const char *near = suggest(word, candidates, n);
	size_t n_long = 0;

	for (size_t i = 0; !near && i < n; i++)
		n_long += abbreviates(word, candidates[i]) || abbreviates(candidates[i], word);
	for (size_t i = 0; n_long == 1 && i < n; i++) /* where several fit, none is a good guess */
		if (abbreviates(word, candidates[i]) || abbreviates(candidates[i], word))
			near = candidates[i];
	return near;
}
