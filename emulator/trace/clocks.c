/* See clocks.h. Theta is found host by host, around and around: 41 places in the bounds that the
 * others leave it, since the variance has several valleys, then golden sections around the best
 * one. The least variance itself lies off the truth: where a receive seems to be posted after its
 * message was sent, that cuts off what made it long. So the middle is taken of the places that are
 * nearly as good. */
#include "trace/clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SWEEPS 40 /* at most */
#define PLACES 41
#define NEAR_NS 1
#define HALVES 20
#define ALIKE 0.05 /* of the variance: what explains the receives as well */
#define WINDOWS 16 /* of time, for the drift */
#define PASSES 200 /* over the hosts, for the drift */

/* A receive as one host's theta changes it: from own + theta or others, what is later, to end, or
 * end + theta. */
struct view {
	double own, others, end;
	bool is_own; /* it is that host's */
};

struct aligner {
	const struct clocks_ask *ask;
	struct clocks_recv *recvs; /* owned; by family; times without drift */
	struct clocks_send *sends; /* owned; so */
	struct view *views;        /* owned; by receive */
	uint32_t *first_of_family; /* owned */
	uint32_t *families;        /* owned; those with a receive that host h is part of */
	uint32_t *first_of_host;   /* owned; in families, for each host and behind the last */
	double *bound;             /* owned; [a * n + b]: theta a - theta b at most */
	uint32_t *by;              /* owned; the receive that says so */
	double *theta;             /* owned */
};

void clocks_deinit(struct clocks *c)
{
	free(c->hosts);
	*c = (struct clocks){0};
}

double clocks_time(const struct clocks *c, uint32_t host, double ns)
{
	const struct clocks_host *h = &c->hosts[host];

	return ns + h->theta_ns + h->drift * (ns - c->middle_ns);
}

static void aligner_deinit(struct aligner *a)
{
	free(a->recvs);
	free(a->sends);
	free(a->views);
	free(a->first_of_family);
	free(a->families);
	free(a->first_of_host);
	free(a->bound);
	free(a->by);
	free(a->theta);
}

/* --- what the receives take --------------------------------------------------------------------
 */

/* What host @host, UINT32_MAX: none, changes about a receive, and what it does not. */
static void look(struct aligner *a, uint32_t number, uint32_t host)
{
	const struct clocks_recv *r = &a->recvs[number];
	struct view v = {.own = -INFINITY,
			 .others = -INFINITY,
			 .end = r->end_ns,
			 .is_own = r->host == host};

	if (v.is_own) {
		v.own = r->posted_ns;
	} else {
		v.others = r->posted_ns + a->theta[r->host];
		v.end += a->theta[r->host];
	}
	for (uint32_t i = r->first_send; i < r->first_send + r->n_sends; i++) {
		const struct clocks_send *s = &a->sends[i];

		if (s->host == host)
			v.own = fmax(v.own, s->start_ns);
		else
			v.others = fmax(v.others, s->start_ns + a->theta[s->host]);
	}
	a->views[number] = v;
}

/* From when all of its sends had begun, where the host that was looked for is at @theta. */
static double duration(const struct view *v, double theta)
{
	double own = v->own + theta;

	return v->end + v->is_own * theta - (own > v->others ? own : v->others);
}

static double variance(const struct aligner *a, uint32_t family, double theta)
{
	uint32_t first = a->first_of_family[family], end = a->first_of_family[family + 1];
	double mean = 0, squares = 0, off;

	for (uint32_t i = first; i < end; i++)
		mean += duration(&a->views[i], theta);
	mean /= end - first;
	for (uint32_t i = first; i < end; i++) {
		off = duration(&a->views[i], theta) - mean;
		squares += off * off;
	}
	return end > first ? squares / (end - first) : 0;
}

static double spread(struct aligner *a)
{
	double sum = 0;

	for (uint32_t i = 0; i < a->ask->n_recvs; i++)
		look(a, i, UINT32_MAX);
	for (uint32_t f = 0; f < a->ask->n_families; f++)
		sum += variance(a, f, 0);
	return a->ask->n_families ? sqrt(sum / a->ask->n_families) : 0;
}

static void look_for(struct aligner *a, uint32_t host)
{
	for (uint32_t i = a->first_of_host[host]; i < a->first_of_host[host + 1]; i++) {
		uint32_t f = a->families[i];

		for (uint32_t k = a->first_of_family[f]; k < a->first_of_family[f + 1]; k++)
			look(a, k, host);
	}
}

/* Of the families of the host that was looked for. */
static double cost(const struct aligner *a, uint32_t host, double theta)
{
	double sum = 0;

	for (uint32_t i = a->first_of_host[host]; i < a->first_of_host[host + 1]; i++)
		sum += variance(a, a->families[i], theta);
	return sum;
}

/* --- in order of families ----------------------------------------------------------------------
 */

/* Marks the families of a receive's hosts, once each. */
static void count_hosts(struct aligner *a, const struct clocks_recv *r, uint32_t *last, bool store)
{
	for (uint32_t i = r->first_send; i <= r->first_send + r->n_sends; i++) {
		uint32_t host = i < r->first_send + r->n_sends ? a->sends[i].host : r->host;

		if (last[host] == r->family + 1)
			continue;
		last[host] = r->family + 1;
		if (store)
			a->families[a->first_of_host[host + 1]++] = r->family;
		else
			a->first_of_host[host + 1]++;
	}
}

/* Return: 0; -ENOMEM. */
static int list_families(struct aligner *a)
{
	uint32_t n = a->ask->n_hosts, sum = 0;
	CLEANUP(freep) uint32_t *last = calloc(n + 1, sizeof(*last));

	a->first_of_host = calloc(n + 2, sizeof(*a->first_of_host));
	if (!last || !a->first_of_host)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->ask->n_recvs; i++)
		count_hosts(a, &a->recvs[i], last, false);
	for (uint32_t h = 0; h <= n; h++) { /* [h + 1] is where h's begin, until they are stored */
		uint32_t count = h < n ? a->first_of_host[h + 1] : 0;

		a->first_of_host[h + 1] = sum;
		sum += count;
	}
	a->families = calloc(sum + 1, sizeof(*a->families));
	if (!a->families)
		return -ENOMEM;
	memset(last, 0, n * sizeof(*last));
	for (uint32_t i = 0; i < a->ask->n_recvs; i++)
		count_hosts(a, &a->recvs[i], last, true);
	return 0;
}

/* Return: 0; -ENOMEM. */
static int sort_families(struct aligner *a)
{
	const struct clocks_ask *ask = a->ask;
	uint32_t sum = 0;

	a->first_of_family = calloc(ask->n_families + 2, sizeof(*a->first_of_family));
	if (!a->first_of_family)
		return -ENOMEM;
	for (uint32_t i = 0; i < ask->n_recvs; i++)
		a->first_of_family[ask->recvs[i].family + 2]++;
	for (uint32_t f = 0; f <= ask->n_families; f++) {
		sum += a->first_of_family[f + 1];
		a->first_of_family[f + 1] = sum;
	}
	for (uint32_t i = 0; i < ask->n_recvs; i++)
		a->recvs[a->first_of_family[ask->recvs[i].family + 1]++] = ask->recvs[i];
	return list_families(a);
}

/* --- bounds ------------------------------------------------------------------------------------
 */

static double *bound_at(struct aligner *a, uint32_t from, uint32_t to)
{
	return &a->bound[(size_t)from * a->ask->n_hosts + to];
}

/* The tightest one of each pair. */
static void find_bounds(struct aligner *a, const struct clocks *c)
{
	const struct clocks_ask *ask = a->ask;
	size_t n = ask->n_hosts;

	for (size_t i = 0; i < n * n; i++) {
		a->bound[i] = i % (n + 1) ? INFINITY : 0;
		a->by[i] = UINT32_MAX;
	}
	for (uint32_t i = 0; i < ask->n_recvs; i++) {
		const struct clocks_recv *r = &ask->recvs[i];

		for (uint32_t k = r->first_send; k < r->first_send + r->n_sends; k++) {
			const struct clocks_send *s = &ask->sends[k];
			double ns = clocks_time(c, r->host, r->end_ns) -
				    clocks_time(c, s->host, s->start_ns);
			size_t at = s->host * n + r->host;

			if (s->host != r->host && ns < a->bound[at]) {
				a->bound[at] = ns;
				a->by[at] = i;
			}
		}
	}
}

/* What follows from the bounds of others. Return: 0; 1: *conflict. */
static int close_bounds(struct aligner *a, struct clocks_conflict *conflict)
{
	uint32_t n = a->ask->n_hosts;

	for (uint32_t via = 0; via < n; via++)
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < n && isfinite(*bound_at(a, i, via)); j++) {
				double sum = *bound_at(a, i, via) + *bound_at(a, via, j);

				if (sum >= *bound_at(a, i, j))
					continue;
				if (i == j && sum < 0) {
					*conflict =
						(struct clocks_conflict){a->by[(size_t)i * n + via],
									 a->by[(size_t)via * n + j],
									 -sum};
					return 1;
				}
				*bound_at(a, i, j) = sum;
				a->by[(size_t)i * n + j] = a->by[(size_t)i * n + via];
			}
	return 0;
}

/* In the middle of what is allowed, which all can be at once; where there is one bound, at it. */
static void start_inside(struct aligner *a, struct clocks *c)
{
	for (uint32_t h = 1; h < a->ask->n_hosts; h++) {
		double low = -*bound_at(a, 0, h), high = *bound_at(a, h, 0);

		a->theta[h] = isfinite(low) && isfinite(high) ? (low + high) / 2
			      : isfinite(low)                 ? low
			      : isfinite(high)                ? high
							      : 0;
		c->hosts[h].low_ns = low;
		c->hosts[h].high_ns = high;
	}
}

/* --- the least variance ------------------------------------------------------------------------
 */

/* What the others leave host @host. */
static void room_of(struct aligner *a, uint32_t host, double *ret_low, double *ret_high)
{
	*ret_low = -INFINITY;
	*ret_high = INFINITY;
	for (uint32_t i = 0; i < a->ask->n_hosts; i++)
		if (i != host) {
			*ret_low = fmax(*ret_low, a->theta[i] - *bound_at(a, i, host));
			*ret_high = fmin(*ret_high, a->theta[i] + *bound_at(a, host, i));
		}
}

/* The place of the least cost in [low, high], where there is one valley. */
static double valley(const struct aligner *a, uint32_t host, double low, double high)
{
	const double golden = (sqrt(5) - 1) / 2;
	double x = high - golden * (high - low), y = low + golden * (high - low);
	double fx = cost(a, host, x), fy = cost(a, host, y);

	while (high - low > NEAR_NS + 1e-12 * fabs(low)) {
		if (fx < fy) {
			high = y;
			y = x;
			fy = fx;
			x = high - golden * (high - low);
			fx = cost(a, host, x);
		} else {
			low = x;
			x = y;
			fx = fy;
			y = low + golden * (high - low);
			fy = cost(a, host, y);
		}
	}
	return fx < fy ? x : y;
}

/* How far towards @to the cost stays below @limit. */
static double edge(const struct aligner *a, uint32_t host, double from, double to, double limit)
{
	for (int i = 0; i < HALVES; i++) {
		double middle = (from + to) / 2;

		if (cost(a, host, middle) <= limit)
			from = middle;
		else
			to = middle;
	}
	return from;
}

/* Return: by how much its theta changed. */
static double settle(struct aligner *a, uint32_t host)
{
	double low, high, was = a->theta[host], best = was, least, step, at;

	room_of(a, host, &low, &high);
	if (!isfinite(low) || !isfinite(high) || low >= high)
		return 0;
	look_for(a, host);
	least = cost(a, host, best);
	step = (high - low) / (PLACES - 1);
	for (int i = 0; i < PLACES; i++) {
		double f = cost(a, host, low + i * step);

		if (f < least) {
			least = f;
			best = low + i * step;
		}
	}
	at = valley(a, host, fmax(low, best - step), fmin(high, best + step));
	if (cost(a, host, at) < least) {
		best = at;
		least = cost(a, host, at);
	}
	low = edge(a, host, best, low, least * (1 + ALIKE));
	high = edge(a, host, best, high, least * (1 + ALIKE));
	a->theta[host] = (low + high) / 2;
	return fabs(a->theta[host] - was);
}

/* --- drift -------------------------------------------------------------------------------------
 */

struct window {
	double ns, at_ns; /* the least that a message seemed to take, and when */
};

/* By which slope the least time of messages between two hosts grows. NAN: they do not say. */
static double slope(const struct window *w)
{
	double n = 0, t = 0, y = 0, tt = 0, ty = 0;

	for (int i = 0; i < WINDOWS; i++)
		if (isfinite(w[i].ns)) {
			n++;
			t += w[i].at_ns;
			y += w[i].ns;
		}
	for (int i = 0; i < WINDOWS; i++)
		if (isfinite(w[i].ns)) {
			tt += (w[i].at_ns - t / n) * (w[i].at_ns - t / n);
			ty += (w[i].at_ns - t / n) * (w[i].ns - y / n);
		}
	return n >= 3 && tt > 0 ? ty / tt : NAN;
}

/* Return: 0; -ENOMEM. */
static int find_drift(const struct clocks_ask *ask, double begin, double end, struct clocks *c)
{
	size_t n = ask->n_hosts;
	CLEANUP(freep) struct window *w = calloc(n * n * WINDOWS, sizeof(*w));
	CLEANUP(freep) double *slopes = calloc(n * n, sizeof(*slopes));

	if (!w || !slopes)
		return -ENOMEM;
	for (size_t i = 0; i < n * n * WINDOWS; i++)
		w[i].ns = INFINITY;
	for (uint32_t i = 0; i < ask->n_recvs; i++) {
		const struct clocks_recv *r = &ask->recvs[i];
		int at = end > begin ? (int)((r->end_ns - begin) / (end - begin) * WINDOWS) : 0;

		for (uint32_t k = r->first_send; k < r->first_send + r->n_sends; k++) {
			const struct clocks_send *s = &ask->sends[k];
			struct window *of = &w[(s->host * n + r->host) * WINDOWS +
					       (at < WINDOWS ? at : WINDOWS - 1)];

			if (s->host != r->host && r->end_ns - s->start_ns < of->ns)
				*of = (struct window){r->end_ns - s->start_ns, r->end_ns};
		}
	}
	for (size_t i = 0; i < n * n; i++)
		slopes[i] = slope(&w[i * WINDOWS]);
	for (int pass = 0; pass < PASSES; pass++) /* each at the mean of what its pairs say */
		for (uint32_t h = 1; h < n; h++) {
			double sum = 0, n_pairs = 0;

			for (uint32_t i = 0; i < n; i++) {
				double to = slopes[h * n + i], from = slopes[i * n + h];

				sum += isnan(to) ? 0 : c->hosts[i].drift + to;
				sum += isnan(from) ? 0 : c->hosts[i].drift - from;
				n_pairs += !isnan(to) + !isnan(from);
			}
			c->hosts[h].drift = n_pairs > 0 ? sum / n_pairs : 0;
		}
	return 0;
}

/* --- all of it ---------------------------------------------------------------------------------
 */

/* Copies the times, without drift. */
static void take_times(struct aligner *a, const struct clocks *c)
{
	for (uint32_t i = 0; i < a->ask->n_recvs; i++) {
		struct clocks_recv *r = &a->recvs[i];

		r->posted_ns = clocks_time(c, r->host, r->posted_ns);
		r->end_ns = clocks_time(c, r->host, r->end_ns);
		for (uint32_t k = r->first_send; k < r->first_send + r->n_sends; k++)
			a->sends[k] = (struct clocks_send){a->ask->sends[k].host,
							   clocks_time(c, a->ask->sends[k].host,
								       a->ask->sends[k].start_ns)};
	}
}

/* Return: 0; -ENOMEM. */
static int prepare(struct aligner *a, struct clocks *c)
{
	const struct clocks_ask *ask = a->ask;
	size_t n = ask->n_hosts, n_sends = 0;
	double begin = INFINITY, end = -INFINITY;

	for (uint32_t i = 0; i < ask->n_recvs; i++) {
		const struct clocks_recv *r = &ask->recvs[i];

		begin = fmin(begin, r->end_ns);
		end = fmax(end, r->end_ns);
		n_sends =
			r->first_send + r->n_sends > n_sends ? r->first_send + r->n_sends : n_sends;
	}
	c->middle_ns = ask->n_recvs ? (begin + end) / 2 : 0;
	c->hosts = calloc(n + 1, sizeof(*c->hosts));
	a->recvs = calloc((size_t)ask->n_recvs + 1, sizeof(*a->recvs));
	a->sends = calloc(n_sends + 1, sizeof(*a->sends));
	a->views = calloc((size_t)ask->n_recvs + 1, sizeof(*a->views));
	a->bound = calloc(n * n + 1, sizeof(*a->bound));
	a->by = calloc(n * n + 1, sizeof(*a->by));
	a->theta = calloc(n + 1, sizeof(*a->theta));
	if (!c->hosts || !a->recvs || !a->sends || !a->views || !a->bound || !a->by || !a->theta)
		return -ENOMEM;
	if (ask->has_drift && find_drift(ask, begin, end, c) < 0)
		return -ENOMEM;
	if (n_sends)
		memcpy(a->sends, ask->sends, n_sends * sizeof(*a->sends));
	return sort_families(a);
}

int clocks_align(const struct clocks_ask *ask, struct clocks *ret, struct clocks_conflict *conflict,
		 struct err *err)
{
	CLEANUP(aligner_deinit) struct aligner a = {.ask = ask};
	CLEANUP(clocks_deinit) struct clocks c = {0};
	double moved = INFINITY;

	if (ask->n_hosts > CLOCKS_HOSTS_MAX)
		return err_set(err, E2BIG, "%u hosts: %d at most", ask->n_hosts, CLOCKS_HOSTS_MAX);
	if (prepare(&a, &c) < 0)
		return -ENOMEM;
	c.spread_before_ns = spread(&a);
	take_times(&a, &c);
	find_bounds(&a, &c);
	if (close_bounds(&a, conflict))
		return 1;
	start_inside(&a, &c);
	for (int sweep = 0; sweep < SWEEPS && moved > NEAR_NS; sweep++) {
		moved = 0;
		for (uint32_t h = 1; h < ask->n_hosts; h++)
			moved = fmax(moved, settle(&a, h));
	}
	c.spread_ns = spread(&a);
	for (uint32_t h = 1; h < ask->n_hosts; h++)
		c.hosts[h].theta_ns = a.theta[h];
	*ret = c;
	c = (struct clocks){0};
	return 0;
}
