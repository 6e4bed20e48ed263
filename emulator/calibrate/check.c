/* See check.h. */
#include "calibrate/check.h"

#include <math.h>

#define STEPS_AN_OCTAVE 16
#define NEIGHBOUR 1e-9

struct check check_times(double (*ns)(const struct curve *c, double bytes), const struct curve *c)
{
	double low = c->points[0].bytes / 4, high = c->points[c->n_points - 1].bytes * 4;
	double most = 0;
	struct check check = {.fall = 0};

	for (int i = 0;; i++) {
		double bytes = low * pow(2, (double)i / STEPS_AN_OCTAVE), t, next, step;

		if (bytes > high)
			return check;
		t = ns(c, bytes);
		if (1 - t / most > fmax(check.fall, NEIGHBOUR)) {
			check.fall = 1 - t / most;
			check.fall_bytes = bytes;
		}
		most = fmax(most, t);
		/* a step can only be where one part ends: just above each place */
		for (int j = 0; j < 3; j++) {
			double place = j == 0 ? bytes : j == 1 ? c->m1 : c->m2;

			if (j && (place < bytes || place > bytes * pow(2, 1. / STEPS_AN_OCTAVE)))
				continue;
			next = ns(c, place * (1 + NEIGHBOUR));
			step = fabs(next / ns(c, place) - 1);
			if (step > fmax(check.jump, 100 * NEIGHBOUR)) {
				check.jump = step;
				check.jump_bytes = place;
			}
		}
	}
}

void check_bridges(const struct curve *c, double *ret_at_m1, double *ret_at_m2)
{
	double above = c->latency_ns + c->m2 / c->bytes_per_ns;

	*ret_at_m1 = fabs(curve_middle_ns(c, c->m1) / c->latency_ns - 1);
	*ret_at_m2 = fabs(above / curve_middle_ns(c, c->m2) - 1);
}
