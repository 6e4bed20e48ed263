/* What of a run's figures must not be believed, and what to do about it: see report.h. */
#include "cli/report.h"

#include <string.h>

#include "base/units.h"
#include "engine/solve.h"

bool report_is_none(const struct report *r)
{
	const char *model = r->header.model;

	return strncmp(model, "none", 4) == 0 && (model[4] == 0 || model[4] == ' ');
}

/* A row is an op of one real rank. */
static void add_lost(const struct record *rec, struct report *r)
{
	const struct record_header *h = &rec->header;
	unsigned long long n = rec->n_rows;
	const char *why = strerror((int)h->lost_errno);

	if (h->n_lost)
		report_lose(r, "%llu of %llu ops%s are lost, since the record could not be written (%s): the figures are of the first %llu",
			    (unsigned long long)h->n_lost, n + h->n_lost, h->n_real > 1 ? " (each real rank's counted)" : "", why, n);
	if (h->n_lost_notes)
		report_lose(r, "%u of the lines for " RECORD_NOTES ", versions.txt and " RECORD_ABORTS " could not be written (%s)", h->n_lost_notes, why);
}

void report_trust(const struct record *rec, const struct record_row *rows, uint64_t n, struct report *rep)
{
	char early[32];
	uint64_t below = 0, slow_local = 0, n_late = 0, late_sims = 0;

	add_lost(rec, rep);
	if (rec->is_truncated)
		report_warn(rep, "the record ends in the middle of a row: nboxd did not end in good order");
	if (n == 0)
		return; /* report_outcome() says why */
	for (uint64_t i = 0; i < n; i++) {
		below += (rows[i].flags & RECORD_BELOW_BOUND) != 0;
		slow_local += rows[i].local_done_ns > rows[i].due_ns;
		if (rows[i].release_ns > rows[i].due_ns + 1000000) {
			n_late++;
			late_sims += rows[i].how == SOLVE_SIM;
		}
	}
	if (rep->n_early)
		report_warn(rep, "%llu of %llu gates opened before they were due, by up to %s: those ops were shorter than in the virtual "
			    "cluster, which is an error of nbox", (unsigned long long)rep->n_early,
			    (unsigned long long)rec->n_rows, units_print_time(-rep->lateness_ns.min, early, sizeof(early)));
	report_comms_warn(rep);
	if (below && !report_is_none(rep))
		report_warn(rep, "%llu of %llu modelled times are below bytes over bandwidth: the model "
			    "is too fast for this network", (unsigned long long)below,
			    (unsigned long long)n);
	if (slow_local)
		report_warn(rep, "in %llu of %llu ops the work among the real ranks took longer than the "
			    "modelled op: their times are this machine's, not the virtual cluster's",
			    (unsigned long long)slow_local, (unsigned long long)n);
	if (rep->lateness_ns.p99 > 1e6)
		report_warn(rep, "gates opened up to %.1f ms late (p99 %.1f ms): the machine was busy%s",
			    rep->lateness_ns.max / 1e6, rep->lateness_ns.p99 / 1e6,
			    2 * late_sims > n_late ? ", or nboxd, which simulates each message of these ops" : "");
}
