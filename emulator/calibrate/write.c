/* See write.h. */
#include "calibrate/write.h"

#include <string.h>

#include "nbox-delaymodel.h"

/* The @i-th word of "a|b". */
static void write_word(const char *choices, size_t i, const char *before, const char *behind,
		       FILE *to)
{
	while (i--)
		choices = strchr(choices, '|') + 1;
	fprintf(to, "%s%.*s%s\n", before, (int)strcspn(choices, "|"), choices, behind);
}

static void write_form(const struct curve *c, FILE *to)
{
	if (c->form != CURVE_TABLE)
		fprintf(to, "latency_us = %.12g\nbandwidth_gbs = %.12g\n", c->latency_ns / 1e3,
			c->bytes_per_ns);
	if (c->form == CURVE_SIGMOID)
		fprintf(to, "m1 = %.12g\nm2 = %.12g\nL = %.12g\nx0 = %.12g\nk = %.12g\nb = %.12g\n",
			c->m1, c->m2, c->L, c->x0, c->k, c->b);
	for (size_t i = 0; c->form == CURVE_TABLE && i < c->n_knots; i++)
		fprintf(to, "knot = %.12g %.9g\n", c->knots[i].bytes, c->knots[i].ns / 1e3);
}

void fitted_write(const struct fitted *f, FILE *to)
{
	fprintf(to,
		"# nbox fit: for --model fitted:file=THIS. point, knot: wire bytes and us; errors are "
		"ratios at points held out.\n"
		"version = %d\nunit = %s\nsource = %s\ndate = %s\n",
		FITTED_VERSION, FITTED_UNIT, f->source, f->date);
	for (size_t i = 0; i < f->n; i++) {
		const struct curve *c = &f->curves[i];

		fputc('\n', to);
		write_word(NBOX_OP_KINDS, c->kind, "[", "]", to);
		fprintf(to, "ranks = %u\nnodes = %u\n", c->n_ranks, c->n_nodes);
		write_word(FITTED_PROTOS, c->proto == CURVE_ANY_PROTO ? 0 : c->proto + 1,
			   "proto = ", "", to);
		fprintf(to, "form = %s\ngmae = %.6g\nmape = %.6g\nmax = %.6g\n",
			curve_form_names[c->form], c->gmae, c->mape, c->max);
		write_form(c, to);
		for (size_t j = 0; j < c->n_points; j++)
			fprintf(to, "point = %.12g %.9g\n", c->points[j].bytes,
				c->points[j].ns / 1e3);
	}
}
