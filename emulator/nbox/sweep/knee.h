/* Where a delay added to each op of a kind begins to show, as nbox why finds it: of a sweep over
 * that delay, and nothing else, from a point without. */
#pragma once

#include "nbox/sweep/point.h"

struct knee {
	bool is_known;
	double ms;
	double n_ops; /* that have the delay, in an iteration */
	char ops[96]; /* in words: "AllReduce of world" */
};

/* @axis: of @s, or CURVE_NO_AXIS. Return: 0, also where none is known; -ENOMEM. */
int knee_find(const struct sweep *s, size_t axis, struct knee *ret);
/* In words. Return: @buf. */
char *knee_text(const struct knee *k, char *buf, size_t size);
/* In words, what of @delay_ms is hidden, where @paid_ms more are injected in an iteration. Return:
 * @buf. */
char *knee_paid_text(const struct knee *k, double delay_ms, double paid_ms, char *buf, size_t size);
