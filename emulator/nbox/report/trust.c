/* See trust.h. */
#include "nbox/report/trust.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "nbox/report/comms.h"

#define LATE_SHARE \
	0.05 /* of a step: below that the times that are looked at vary more from run to run */

/* Lost are ops of single real ranks. */
static void add_lost(const struct record *rec, struct report *r)
{
	const struct record_end *h = &rec->end;
	unsigned long long n = rec->n_ops;
	const char *why = strerror((int)h->lost_errno);

	if (h->n_lost)
		report_lose(
			r,
			"%llu of %llu ops%s are lost, since the record could not be written (%s): the figures are of the first %llu",
			(unsigned long long)h->n_lost, n + h->n_lost,
			rec->header.n_real > 1 ? " (each real rank's counted)" : "", why, n);
	if (h->n_lost_notes)
		report_lose(r,
			    "%u of the lines for " RECORD_NOTES ", versions.txt, " RECORD_ABORTS
			    " and " RECORD_ENDS " could not be written (%s)",
			    h->n_lost_notes, why);
}

/* The step's time, or the run's, has much in it that is this machine's alone. Under none, with no
 * what-ifs, no time is the virtual cluster's, and the summary says so. */
static void warn_late(struct report *r)
{
	/* what the virtual clock stood still for is not in its times */
	double late_ns = r->late_ns - fmax(r->wall_ns - r->virtual_ns, 0);
	const char *why =
		r->header.n_real > 1
			? "this machine was busy: leave nboxd a core of its own, or take fewer real ranks"
			: "this machine was busy: leave nboxd a core of its own";
	char late[32], whole[32];

	if (late_ns < LATE_SHARE * r->virtual_ns || strcmp(r->header.model, "none") == 0)
		return;
	if (2 * r->late_work_ns > r->late_ns)
		why = "the work among the real ranks takes longer than the modelled ops do: take fewer real ranks, or none of their "
		      "data (--data none)";
	else if (2 * r->late_sim_ns > r->late_ns)
		why = "nboxd simulates each message of these ops, which takes longer than they do: take a smaller cluster, or a model "
		      "and what-ifs that need no simulation";
	report_warn(
		r,
		"%.0f %% of %s, %s of %s, is this machine's, not the virtual cluster's: gates opened late, since %s",
		100 * late_ns / r->virtual_ns,
		r->n_steps ? "a step" : "the time from the first op to the last",
		units_print_time(late_ns, late, sizeof(late)),
		units_print_time(r->virtual_ns, whole, sizeof(whole)), why);
}

void report_trust(const struct record *rec, const struct record_op *rows, uint64_t n,
		  struct report *r)
{
	uint64_t below = 0;
	char early[32];

	add_lost(rec, r);
	if (rec->is_truncated)
		report_warn(r, "the record's end is missing: nboxd did not end in good order");
	if (n == 0)
		return; /* report_outcome() says why */
	for (uint64_t i = 0; i < n; i++)
		below += (rows[i].flags & RECORD_BELOW_BOUND) != 0;
	if (r->n_early)
		report_warn(
			r,
			"%llu of %llu gates opened before they were due, by up to %s: those ops were shorter than in the virtual "
			"cluster, which is an error of nbox",
			(unsigned long long)r->n_early, (unsigned long long)rec->n_ops,
			units_print_time(-r->lateness_ns.min, early, sizeof(early)));
	report_comms_warn(r);
	if (below && !report_is_none(r))
		report_warn(r,
			    "%llu of %llu modelled times are below bytes over bandwidth: the model "
			    "is too fast for this network",
			    (unsigned long long)below, (unsigned long long)n);
	warn_late(r);
}
