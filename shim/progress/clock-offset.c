/* See clock-offset.h. */
#include "shim/progress/clock-offset.h"

#include <stddef.h>

#include "base/clock.h"

#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define INTERVAL_MAX_NS NS_PER_S
#define SLEW_NS (100 * NS_PER_MS)
#define SLEW_RATE 10     /* a large gap takes ten times its length */
#define DRIFT_MAX 5e-4   /* NTP corrects no clock by more than 500 ppm */
#define DRIFT_RATE 1e-16 /* ... per ns: 0.1 ppm a second, a quartz that warms up quickly */

static double ns_from(uint64_t from, uint64_t to)
{
	return (double)(int64_t)(to - from);
}

static double magnitude(double x)
{
	return x < 0 ? -x : x;
}

/* Of the line from @a to @b, at @t_ns. */
static double line_error(const struct clock_ping *a, const struct clock_ping *b, uint64_t t_ns)
{
	double ahead = magnitude(ns_from(b->at_ns, t_ns)), span = ns_from(a->at_ns, b->at_ns);

	if (span <= 0)
		return (double)b->error_ns + DRIFT_MAX * ahead;
	return (double)b->error_ns +
	       ahead * ((double)(a->error_ns + b->error_ns) / span + DRIFT_RATE * (span + ahead));
}

static int64_t line_offset(const struct clock_offset *o, uint64_t own_ns)
{
	return o->line[1].offset_ns + (int64_t)(o->drift * ns_from(o->line[1].at_ns, own_ns));
}

/* How much of the gap is left at @own_ns. */
static int64_t gap_at(const struct clock_offset *o, uint64_t own_ns)
{
	double left;

	if (!o->gap_ns)
		return 0;
	left = 1 - ns_from(o->joint_ns, own_ns) / (double)o->slew_ns;
	left = left < 0 ? 0 : left > 1 ? 1 : left;
	return (int64_t)((double)o->gap_ns * left);
}

/* The best line for the time until the next ping. */
static void choose_line(struct clock_offset *o, uint64_t now_ns)
{
	uint64_t n = o->n_kept < CLOCK_PINGS_KEPT ? o->n_kept : CLOCK_PINGS_KEPT;
	uint64_t first = o->n_kept - n, until_ns = now_ns + INTERVAL_MAX_NS;
	const struct clock_ping *from = NULL, *to = NULL;
	double least = 0, span;

	for (uint64_t j = first; j < o->n_kept; j++) {
		for (uint64_t i = first; i <= j; i++) {
			const struct clock_ping *a = &o->kept[i % CLOCK_PINGS_KEPT];
			const struct clock_ping *b = &o->kept[j % CLOCK_PINGS_KEPT];
			double error = line_error(a, b, until_ns);

			if (to && error >= least)
				continue;
			from = a;
			to = b;
			least = error;
		}
	}
	o->line[0] = *from;
	o->line[1] = *to;
	span = ns_from(from->at_ns, to->at_ns);
	o->drift =
		span > 0 ? ns_from((uint64_t)from->offset_ns, (uint64_t)to->offset_ns) / span : 0;
	o->drift = o->drift < -DRIFT_MAX ? -DRIFT_MAX : o->drift > DRIFT_MAX ? DRIFT_MAX : o->drift;
}

void clock_offset_add(struct clock_offset *o, uint64_t sent_ns, uint64_t daemon_ns, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - sent_ns;
	struct clock_ping ping = {
		.at_ns = sent_ns + rtt_ns / 2,
		.offset_ns = (int64_t)(daemon_ns - (sent_ns + rtt_ns / 2)),
		/* while it was on its way the clocks drifted, too */
		.error_ns = 1 + rtt_ns / 2 + (uint64_t)(DRIFT_MAX * (double)rtt_ns),
	};
	int64_t seen_ns = line_offset(o, now_ns) + gap_at(o, now_ns);

	if (o->n_kept &&
	    magnitude(ns_from((uint64_t)line_offset(o, ping.at_ns), (uint64_t)ping.offset_ns)) >
		    (double)ping.error_ns + line_error(&o->line[0], &o->line[1], ping.at_ns))
		o->n_kept = 0;
	if (!o->n_kept)
		o->first_ns = ping.at_ns;
	o->kept[o->n_kept++ % CLOCK_PINGS_KEPT] = ping;
	choose_line(o, now_ns);
	if (o->n_pings++ < CLOCK_FIRST_PINGS)
		return;
	o->joint_ns = now_ns;
	o->gap_ns = (int64_t)((uint64_t)seen_ns - (uint64_t)line_offset(o, now_ns));
	o->slew_ns = SLEW_RATE * (uint64_t)magnitude((double)o->gap_ns);
	if (o->slew_ns < SLEW_NS)
		o->slew_ns = SLEW_NS;
}

uint64_t clock_offset_next_ns(const struct clock_offset *o)
{
	uint64_t last_ns = o->kept[(o->n_kept - 1) % CLOCK_PINGS_KEPT].at_ns;
	uint64_t wait_ns = last_ns - o->first_ns;

	wait_ns = wait_ns < INTERVAL_MIN_NS   ? INTERVAL_MIN_NS
		  : wait_ns > INTERVAL_MAX_NS ? INTERVAL_MAX_NS
					      : wait_ns;
	return last_ns + wait_ns;
}

uint64_t clock_offset_to_daemon(const struct clock_offset *o, uint64_t own_ns)
{
	return own_ns + (uint64_t)(line_offset(o, own_ns) + gap_at(o, own_ns));
}

/* The offset at a time that the offset gives: each round is at least ten times as near. */
uint64_t clock_offset_from_daemon(const struct clock_offset *o, uint64_t daemon_ns)
{
	uint64_t own_ns = daemon_ns - (uint64_t)o->line[1].offset_ns;

	for (int i = 0; i < 16; i++) {
		uint64_t wrong_ns = daemon_ns - clock_offset_to_daemon(o, own_ns);

		if (!wrong_ns)
			break;
		own_ns += wrong_ns;
	}
	return own_ns;
}

uint64_t clock_offset_error_ns(const struct clock_offset *o, uint64_t own_ns)
{
	if (!o->n_pings)
		return 0;
	return 1 + (uint64_t)(line_error(&o->line[0], &o->line[1], own_ns) +
			      magnitude((double)gap_at(o, own_ns)));
}
