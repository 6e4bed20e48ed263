/* See print.h. */
#include "nbox/fit/print.h"

#include <math.h>

#include "base/units.h"
#include "nbox-delaymodel.h"
#include "schedule/coll.h"

char *fit_name(const struct curve *c, char *buf, size_t size)
{
	static const char *const protos[] = {
		[NBOX_LL] = ", LL", [NBOX_LL128] = ", LL128", [NBOX_SIMPLE] = ", Simple"};

	snprintf(buf, size, "%s, %u ranks on %u node%s%s", coll_kind_name(c->kind), c->n_ranks,
		 c->n_nodes, c->n_nodes == 1 ? "" : "s",
		 c->proto == CURVE_ANY_PROTO ? "" : protos[c->proto]);
	return buf;
}

char *fit_parameters(const struct curve *c, char *buf, size_t size)
{
	if (c->form == CURVE_TABLE)
		snprintf(buf, size, "%zu knots", c->n_knots);
	else if (c->form == CURVE_ALPHABETA)
		snprintf(buf, size, "%.4g us + wire bytes / %.4g GB/s", c->latency_ns / 1e3,
			 c->bytes_per_ns);
	else
		snprintf(buf, size,
			 "%.4g us up to 2^%.1f wire bytes; L %.4g, x0 %.4g, k %.4g, b %.4g; from "
			 "2^%.1f on %.4g us + wire bytes / %.4g GB/s",
			 c->latency_ns / 1e3, log2(c->m1), c->L, c->x0, c->k, c->b, log2(c->m2),
			 c->latency_ns / 1e3, c->bytes_per_ns);
	return buf;
}

static void print_residuals(const struct curve *c, FILE *to)
{
	fprintf(to, "  residuals (%%):");
	for (size_t i = 0; i < c->n_points; i++)
		fprintf(to, "%s%+.1f", i % 16 ? " " : "\n    ",
			100 * (curve_ns(c, c->points[i].bytes) / c->points[i].ns - 1));
	fputc('\n', to);
}

void fit_print(const struct curve *c, const struct fit_scores *scores, FILE *to)
{
	char name[128], low[32], high[32], text[320];
	double factor = curve_wire_factor(c->kind, c->n_ranks);

	fprintf(to, "%s: %zu sizes, %s to %s\n", fit_name(c, name, sizeof(name)), c->n_points,
		units_print_bytes((uint64_t)llround(c->points[0].bytes / factor), low, sizeof(low)),
		units_print_bytes((uint64_t)llround(c->points[c->n_points - 1].bytes / factor),
				  high, sizeof(high)));
	fprintf(to, "  errors at points held out     GMAE    MAPE     max\n");
	for (enum curve_form f = 0; f < CURVE_FORMS; f++) {
		const struct score *s = &scores->held_out[f];

		if (s->n)
			fprintf(to, "  %c %-24s %6.2f %% %6.2f %% %6.1f %%\n",
				f == c->form ? '*' : ' ', curve_form_names[f], 100 * s->gmae,
				100 * s->mape, 100 * s->max);
		else
			fprintf(to, "    %-24s these sizes do not make one\n", curve_form_names[f]);
	}
	fprintf(to, "  %s: %s\n", curve_form_names[c->form], fit_parameters(c, text, sizeof(text)));
	print_residuals(c, to);
}
