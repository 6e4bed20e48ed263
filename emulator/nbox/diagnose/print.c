/* See diagnose.h. */
#include "nbox/diagnose/diagnose.h"

void diagnose_print(const struct diagnosis *d, FILE *to)
{
	int n = 0;

	for (int i = 0; i < DIAGNOSE_CAUSES; i++)
		n += d->of[i].is_found;
	fprintf(to, "-- nbox diagnose: iterations of %.3f ms; %d cause%s found\n",
		d->iteration_ns / 1e6, n, n == 1 ? "" : "s");
	for (int i = 0; i < DIAGNOSE_CAUSES; i++) {
		const struct diagnose_finding *f = &d->of[i];

		fprintf(to, "   %-20s %-4s%10.3f ms won if %s\n",
			diagnose_name((enum diagnose_cause)i), f->is_found ? "YES" : "no",
			f->won_ns / 1e6, f->without);
		fprintf(to, "   %-20s     %s\n", "", f->evidence);
	}
}

json_t *diagnose_json(const struct diagnosis *d)
{
	json_t *list = json_array();

	for (int i = 0; i < DIAGNOSE_CAUSES; i++) {
		const struct diagnose_finding *f = &d->of[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:f, s:s, s:s}", "cause",
						diagnose_name((enum diagnose_cause)i), "found",
						f->is_found, "won_ms", f->won_ns / 1e6, "without",
						f->without, "evidence", f->evidence));
	}
	return json_pack("{s:f, s:o}", "iteration_ms", d->iteration_ns / 1e6, "causes", list);
}
