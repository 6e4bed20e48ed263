/* nboxd's clock and ours, when the two are on different hosts. A ping says what nboxd's clock was
 * at some time between the ping's sending and its answer: in the middle, give or take half of the
 * round trip (Cristian 1989). Clocks of two hosts drift apart at a rate that hardly changes for
 * minutes, so two pings make a line, with a bound of its error; of all pairs of recent pings the
 * one with the smallest bound is taken. So a ping that was queued behind data does not count (NTP's
 * clock filter, RFC 5905). A ping that contradicts the line shows that the rate has changed: the
 * earlier ones are forgotten then.
 *
 * The clock that others see never jumps: it follows a new line within a tenth of a second, or ten
 * times its distance. No I/O, no clock of its own. */
#pragma once

#include <stdint.h>

#define CLOCK_FIRST_PINGS 8 /* one after the other; before them nobody may ask for times */
#define CLOCK_PINGS_KEPT 32

struct clock_ping {
	uint64_t at_ns;    /* middle of the round trip, our clock */
	int64_t offset_ns; /* nboxd's clock minus ours then ... */
	uint64_t error_ns; /* ... which is not more wrong than this */
};

/* Zeros: one clock. */
struct clock_offset {
	struct clock_ping kept[CLOCK_PINGS_KEPT]; /* ring */
	uint64_t n_kept;                          /* counts on when the ring is full */
	uint64_t n_pings;
	uint64_t first_ns;         /* of those kept and those they replaced */
	struct clock_ping line[2]; /* from which to which; the same: with unknown drift */
	double drift;              /* of the line: how much more nboxd's clock gains than ours */
	/* What others see comes from an earlier line, and leaves it from @joint_ns on. */
	uint64_t joint_ns, slew_ns;
	int64_t gap_ns;
};

/* One ping: sent at @sent_ns and answered at @now_ns in our clock, seen by nboxd at
 * @daemon_ns in its own. */
void clock_offset_add(struct clock_offset *o, uint64_t sent_ns, uint64_t daemon_ns,
		      uint64_t now_ns);
/* When the next ping is due: soon after few pings, every second in the end. */
uint64_t clock_offset_next_ns(const struct clock_offset *o);

/* Asked for the present, both keep the order of times (to 1 ns), also across clock_offset_add(). */
uint64_t clock_offset_to_daemon(const struct clock_offset *o, uint64_t own_ns);
uint64_t clock_offset_from_daemon(const struct clock_offset *o, uint64_t daemon_ns);
/* How wrong these are at most for a time near @own_ns, if the rate of the drift changes by no more
 * than 0.1 ppm a second. */
uint64_t clock_offset_error_ns(const struct clock_offset *o, uint64_t own_ns);
