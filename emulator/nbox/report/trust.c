/* See trust.h. */
#include "nbox/report/trust.h"

#include <string.h>

#include "base/units.h"
#include "config/open-model.h"
#include "nbox/report/comms.h"

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

void report_trust(const struct record *rec, const struct record_op *rows, uint64_t n,
		  struct report *r)
{
	uint64_t below = 0, above = 0;
	const struct record_op *first = NULL;
	struct asked asked = {.kind = -1};
	char size[32];
	char early[32];

	add_lost(rec, r);
	if (rec->is_truncated)
		report_warn(r, "the record's end is missing: nboxd did not end in good order");
	if (n == 0)
		return; /* report_outcome() says why */
	for (uint64_t i = 0; i < n; i++) {
		below += (rows[i].flags & RECORD_BELOW_BOUND) != 0;
		above += (rows[i].flags & RECORD_FAR_ABOVE) != 0;
		if (rows[i].flags & RECORD_FAR_ABOVE && !first)
			first = &rows[i];
	}
	if (r->n_early)
		report_warn(
			r,
			"%llu of %llu gates opened before they were due, by up to %s: those ops were shorter than in the virtual "
			"cluster, which is an error of nbox",
			(unsigned long long)r->n_early, (unsigned long long)rec->n_ops,
			units_print_time(-r->lateness_ns.min, early, sizeof(early)));
	report_comms_warn(r);
	if (below && !report_is_none(r))
		report_warn(
			r,
			"ERROR: %llu of %llu modelled times are below the bound, which nothing on "
			"this network can do: the model is wrong here",
			(unsigned long long)below, (unsigned long long)n);
	if (first) /* nbox explain takes nccl-tests' sizes */
		asked_add(&asked, (enum coll_kind)first->kind, first->bytes, first->of->n_ranks);
	if (first && !report_is_none(r))
		report_warn(
			r,
			"%llu of %llu modelled times are more than twice the bound, such as %s of "
			"%s over %u ranks: nbox explain, with config.yaml of the results, says "
			"which link and why",
			(unsigned long long)above, (unsigned long long)n,
			coll_kind_name(first->kind),
			units_print_bytes((uint64_t)asked.most_bytes, size, sizeof(size)),
			first->of->n_ranks);
}
