/* A curve that was fitted to measurements: how long a collective takes by its wire bytes, those
 * that one rank sends or receives, its own part left out. Three forms:
 *
 *   alphabeta   latency + bytes / bandwidth
 *   sigmoid     up to m1 the latency; up to m2 bytes / 10^(L / (1 + e^(-k (x - x0))) + b), where x
 *               is log2(bytes) and 10^... the bandwidth in GB/s; above it latency + bytes /
 *               bandwidth. Lin et al., "Towards Universal Performance Modeling for Machine Learning
 *               Training on Multi-GPU Platforms", equations 5 to 7, with the bandwidth below the
 *               bytes: as equation 6 is printed, more bytes would take less time. The three do not
 *               meet; so one octave above m1, and one above m2, goes from one to the other. What
 *               grows with the bytes never falls.
 *   table       straight lines between knots; below the first one's bytes its time, above the last
 *               one's its bandwidth
 *
 * Shared by the plug-in and by what fits: libc and libm only. */
#ifndef FITTED_CURVE_H
#define FITTED_CURVE_H

#include <stddef.h>
#include <stdint.h>

enum curve_form { CURVE_ALPHABETA, CURVE_SIGMOID, CURVE_TABLE, CURVE_FORMS };

struct curve_point {
	double bytes, ns;
};

struct curve {
	uint32_t kind, n_ranks, n_nodes;
	uint32_t proto; /* enum nbox_proto; CURVE_ANY_PROTO */
	enum curve_form form;
	double latency_ns, bytes_per_ns; /* alphabeta, sigmoid */
	double m1, m2, L, x0, k, b;      /* sigmoid */
	struct curve_point *knots;       /* owned; table */
	size_t n_knots;
	struct curve_point *points; /* owned: what was measured; bytes rise */
	size_t n_points;
	double gmae, mape, max; /* errors at points that were held out; ratios */
};

#define CURVE_ANY_PROTO UINT32_MAX

/* The least slope of a sigmoid with which time would fall: L k / 4 is the most decades of bandwidth
 * an octave of bytes. */
#define CURVE_STEEPEST 1.2041199826559248 /* 4 log10(2) */

extern const char *const curve_form_names[CURVE_FORMS];

void curve_deinit(struct curve *c);
double curve_ns(const struct curve *c, double bytes);
/* The middle one of the sigmoid's three equations, without bounds or crossings. */
double curve_middle_ns(const struct curve *c, double bytes);
/* Wire bytes for each byte of the size that nccl-tests prints: its factor of the bus bandwidth. */
double curve_wire_factor(uint32_t kind, uint32_t n_ranks);

#endif
