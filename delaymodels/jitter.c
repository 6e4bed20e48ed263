/* jitter: random time, from the run's seed: the same seed gives the same run.
 *
 *   on=op        each op takes a draw longer (shorter where the draw is negative)
 *   on=message   each message's latency is a draw longer, never below 0
 *   on=compute   each stretch of each rank's computation, from one wait to the next,
 *                is a draw longer, never below 0; each rank, virtual or real, has
 *                draws of its own. Shares only: a time would come on top once a
 *                stretch, and how many those are is the job's business
 *
 *   dist=uniform     min, max
 *   dist=normal      mean, stddev
 *   dist=lognormal   median, sigma: exp() of a normal with mean ln median, stddev sigma
 *   dist=pareto      scale, shape: P(X > x) = (scale / x)^shape for x >= scale
 *
 * Without dist= the given values name the distribution.
 *
 * min, max, mean, stddev, median and scale are times ("50us"), or shares ("5%") of
 * what is jittered: of the op's time (by the model and the what-ifs before), of the
 * message's latency and occupancy, or of the stretch of computation.
 *
 * A draw is the inverse of the distribution function at a uniform number that is a
 * function of the seed and of the op, the message, or the segment and its rank;
 * nothing depends on the order in which the host asks. All is done with q = 1 - u, whose small
 * values, which make the tail, a double holds exactly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nbox-delaymodel.h"

enum { ON_OP, ON_MESSAGE, ON_COMPUTE };
enum { UNIFORM, NORMAL, LOGNORMAL, PARETO };

struct amount {
	double value; /* ns; a share; or a number that has no unit (sigma, shape) */
	int is_share;
};

struct jitter {
	const struct nbox_host *host;
	const struct nbox_next *next;
	uint32_t on, dist;
	struct amount first, second; /* the distribution's two parameters, in this order */
};

/* --- parameters ------------------------------------------------------------ */

#define DISTS "uniform|normal|lognormal|pareto"

/* The keys of each distribution, which no other distribution has, and whether it needs the first.
 */
static const struct {
	const char *name, *first, *second;
	int needs_first;
} dists[] = {
	{"uniform", "min", "max", 0},
	{"normal", "mean", "stddev", 0},
	{"lognormal", "median", "sigma", 1},
	{"pareto", "scale", "shape", 1},
};

/* Without dist= the first key that belongs to a distribution names it. */
static int find_dist(struct jitter *j, const struct nbox_host *h, const struct nbox_kv *kv,
		     size_t n_kv)
{
	for (j->dist = UNIFORM; j->dist <= PARETO; j->dist++)
		if (nbox_value(kv, n_kv, dists[j->dist].first) ||
		    nbox_value(kv, n_kv, dists[j->dist].second))
			return 0;
	h->error(h, "give the values of a distribution: min and max (uniform), mean and stddev "
		    "(normal), median and sigma (lognormal), or scale and shape (pareto)");
	return -1;
}

static int check_keys(const struct jitter *j, const struct nbox_host *h, const struct nbox_kv *kv,
		      size_t n_kv)
{
	const char *first = dists[j->dist].first, *second = dists[j->dist].second;
	size_t i;

	for (i = 0; i < n_kv; i++) {
		const char *key = kv[i].key;

		if (strcmp(key, "dist") == 0 || strcmp(key, "on") == 0 || strcmp(key, first) == 0 ||
		    strcmp(key, second) == 0)
			continue;
		h->error(h, "%s: dist=%s has %s and %s", key, dists[j->dist].name, first, second);
		return -1;
	}
	if (!nbox_value(kv, n_kv, second) ||
	    (dists[j->dist].needs_first && !nbox_value(kv, n_kv, first))) {
		h->error(h, "%s must be given with dist=%s",
			 nbox_value(kv, n_kv, second) ? first : second, dists[j->dist].name);
		return -1;
	}
	return 0;
}

/* A time, or a share of what is jittered. */
static int parse_amount(const struct jitter *j, const struct nbox_host *h, const char *key,
			const char *text, struct amount *ret)
{
	size_t len = text ? strlen(text) : 0;

	if (j->on == ON_COMPUTE && len && text[len - 1] != '%') {
		h->error(h, "%s: on=compute takes shares of the computation, such as 5%%", key);
		return -1;
	}
	if (len == 0 || text[len - 1] != '%')
		return h->parse_time(h, key, text, &ret->value);
	ret->is_share = 1;
	return h->parse_ratio(h, key, text, &ret->value);
}

static int parse_values(struct jitter *j, const struct nbox_host *h, const struct nbox_kv *kv,
			size_t n)
{
	const char *first = dists[j->dist].first, *second = dists[j->dist].second;
	int is_ratio = j->dist == LOGNORMAL || j->dist == PARETO;

	if (parse_amount(j, h, first, nbox_value(kv, n, first), &j->first) < 0)
		return -1;
	if (is_ratio ? h->parse_ratio(h, second, nbox_value(kv, n, second), &j->second.value) < 0
		     : parse_amount(j, h, second, nbox_value(kv, n, second), &j->second) < 0)
		return -1;
	if (j->dist == UNIFORM && j->first.value > 0 && j->first.is_share != j->second.is_share) {
		h->error(h, "min and max: make both times or both percentages");
		return -1;
	}
	if (j->dist == UNIFORM && j->second.value < j->first.value) {
		h->error(h, "max: it is below min");
		return -1;
	}
	if (j->dist == LOGNORMAL && j->second.value > 10) {
		h->error(h, "sigma: %g is above 10, a factor of a million and more",
			 j->second.value);
		return -1;
	}
	if (j->dist == PARETO && !(j->second.value > 1)) {
		h->error(h, "shape: %g is not above 1: such a distribution has no mean",
			 j->second.value);
		return -1;
	}
	return 0;
}

static int parse(struct jitter *j, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	const char *dist = nbox_value(kv, n, "dist");

	if (!dist && find_dist(j, h, kv, n) < 0)
		return -1;
	if (h->parse_choice(h, "dist", dist, DISTS, &j->dist) < 0 ||
	    h->parse_choice(h, "on", nbox_value(kv, n, "on"), "op|message|compute", &j->on) < 0)
		return -1;
	if (check_keys(j, h, kv, n) < 0)
		return -1;
	return parse_values(j, h, kv, n);
}

static int jitter_create(const struct nbox_host *host, const struct nbox_next *next,
			 const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct jitter *j = calloc(1, sizeof(*j));

	if (!j) {
		host->error(host, "out of memory");
		return -1;
	}
	j->host = host;
	j->next = next;
	if (parse(j, host, kv, n_kv) < 0) {
		free(j);
		return -1;
	}
	*ret_model = j;
	return 0;
}

/* --- draws ----------------------------------------------------------------- */

/* (a[0] + a[1] r + ... + a[7] r^7) / (1 + b[0] r + ... + b[6] r^7) */
static double ratio(const double a[8], const double b[7], double r)
{
	double num = a[7], den = b[6];
	int i;

	for (i = 6; i >= 0; i--)
		num = num * r + a[i];
	for (i = 5; i >= 0; i--)
		den = den * r + b[i];
	return num / (den * r + 1);
}

/* x with P(X > x) = q of the standard normal, to 16 digits: M. J. Wichura, Algorithm AS 241
 * (PPND16), Applied Statistics 37 (1988), 477-484. */
static double normal_tail_inverse(double q)
{
	static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
				    1.9715909503065514427e+3, 1.3731693765509461125e+4,
				    4.5921953931549871457e+4, 6.7265770927008700853e+4,
				    3.3430575583588128105e+4, 2.5090809287301226727e+3};
	static const double b[7] = {4.2313330701600911252e+1, 6.8718700749205790830e+2,
				    5.3941960214247511077e+3, 2.1213794301586595867e+4,
				    3.9307895800092710610e+4, 2.8729085735721942674e+4,
				    5.2264952788528545610e+3};
	static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
				    5.76949722146069140550e0,  3.64784832476320460504e0,
				    1.27045825245236838258e0,  2.41780725177450611770e-1,
				    2.27238449892691845833e-2, 7.74545014278341407640e-4};
	static const double d[7] = {2.05319162663775882187e0,  1.67638483018380384940e0,
				    6.89767334985100004550e-1, 1.48103976427480074590e-1,
				    1.51986665636164571966e-2, 5.47593808499534494600e-4,
				    1.05075007164441684324e-9};
	static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
				    1.78482653991729133580e0,  2.96560571828504891230e-1,
				    2.65321895265761230930e-2, 1.24266094738807843860e-3,
				    2.71155556874348757815e-5, 2.01033439929228813265e-7};
	static const double f[7] = {5.99832206555887937690e-1, 1.36929880922735805310e-1,
				    1.48753612908506148525e-2, 7.86869131145613259100e-4,
				    1.84631831751005468180e-5, 1.42151175831644588870e-7,
				    2.04426310338993978564e-15};
	double from_half = 0.5 - q, p, r;

	if (fabs(from_half) <= 0.425)
		return from_half * ratio(a, b, 0.180625 - from_half * from_half);
	p = q < 0.5 ? q : 1 - q;
	r = sqrt(-log(p < 0x1p-60 ? 0x1p-60 : p));
	r = r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5);
	return q < 0.5 ? r : -r;
}

/* The value that is exceeded with probability q, q in (0, 1]. @base_ns: what is jittered. */
static double tail_inverse(const struct jitter *j, double base_ns, double q)
{
	double first = j->first.value * (j->first.is_share ? base_ns : 1);
	double second = j->second.value * (j->second.is_share ? base_ns : 1);

	switch (j->dist) {
	case UNIFORM:
		return first + (1 - q) * (second - first);
	case NORMAL:
		return first + second * normal_tail_inverse(q);
	case LOGNORMAL:
		return first * exp(second * normal_tail_inverse(q));
	default:
		return first * pow(q, -1 / second);
	}
}

/* --- answers --------------------------------------------------------------- */

/* What keeps the draws for ops, messages and computation apart. */
#define STREAM(on) ((uint64_t)(on) << 62)

static int jitter_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			  struct nbox_delay *ret)
{
	const struct jitter *j = model;
	int r = j->next->message(j->next, op, msg, ret);
	double u;

	if (r != 0 || j->on != ON_MESSAGE || msg->hop == NBOX_SELF)
		return r;
	u = j->host->chance(j->host, op->number, (uint64_t)msg->src << 32 | msg->dst,
			    STREAM(ON_MESSAGE) | (uint64_t)msg->lane << 44 | msg->index);
	ret->latency_ns += tail_inverse(j, ret->latency_ns + ret->occupancy_ns, 1 - u);
	if (ret->latency_ns < 0)
		ret->latency_ns = 0;
	return 0;
}

static int jitter_extra(void *model, const struct nbox_op *op, double so_far_ns, int from_messages,
			double *ret_extra_ns)
{
	const struct jitter *j = model;

	(void)from_messages;
	if (j->on != ON_OP)
		return 1;
	*ret_extra_ns = tail_inverse(j, so_far_ns,
				     1 - j->host->chance(j->host, op->number, 0, STREAM(ON_OP)));
	return 0;
}

static int jitter_segment(void *model, const struct nbox_segment *seg, double ns, double *ret_ns)
{
	const struct jitter *j = model;
	double u;

	if (ns <= 0)
		return 1; /* two edges at once: nothing was computed between them */
	u = j->host->chance(j->host, seg->number, seg->rank, STREAM(ON_COMPUTE));
	ns += tail_inverse(j, ns, 1 - u);
	*ret_ns = ns > 0 ? ns : 0;
	return 0;
}

static uint32_t jitter_traits(void *model)
{
	const struct jitter *j = model;

	return NBOX_DECORATOR | (j->on == ON_MESSAGE ? 0 : NBOX_NO_MESSAGES) |
	       (j->on == ON_COMPUTE ? 0 : NBOX_NO_SEGMENTS);
}

static const struct nbox_param params[] = {
	{"dist", "choice", "that of the values", DISTS},
	{"on", "choice", "op", "what it acts on: op|message|compute"},
	{"min", "time or %", "0ns",
	 "uniform: the least; a percentage is of what is jittered; on=compute: no times"},
	{"max", "time or %", "none", "uniform: the most; must be given"},
	{"mean", "time or %", "0ns", "normal: the mean"},
	{"stddev", "time or %", "none", "normal: the standard deviation; must be given"},
	{"median", "time or %", "none", "lognormal: the median; must be given"},
	{"sigma", "ratio", "none", "lognormal: deviation of the logarithm; must be given"},
	{"scale", "time or %", "none", "pareto: the least; must be given"},
	{"shape", "ratio", "none", "pareto: the exponent, above 1; must be given"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "jitter",
	.summary = "random time on ops, messages or computation, from the run's seed",
	.flags = NBOX_DECORATOR,
	.params = params,
	.create = jitter_create,
	.destroy = free,
	.message = jitter_message,
	.extra = jitter_extra,
	.segment = jitter_segment,
	.traits = jitter_traits,
};
