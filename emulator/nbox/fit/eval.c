/* See eval.h. */
#include "nbox/fit/eval.h"

#include <math.h>

#include "base/units.h"
#include "calibrate/check.h"
#include "nbox/fit/print.h"
#include "schedule/coll.h"

/* "beyond the measured ranks 8 times, bytes 2.5 times"; "" inside. */
static void print_beyond(const struct fitted_beyond *b, FILE *to)
{
	if (b->ranks > 1)
		fprintf(to, "  extrapolated %.3g times beyond the measured ranks", b->ranks);
	if (b->bytes > 1)
		fprintf(to, "  extrapolated %.3g times beyond the measured bytes", b->bytes);
	fputc('\n', to);
}

static void print_table(const struct fitted *f, const struct curve *c,
			const struct eval_sizes *sizes, FILE *to)
{
	char name[128];

	fprintf(to, "# %s; errors at points held out: GMAE %.1f %%, MAPE %.1f %%, max %.1f %%\n",
		fit_name(c, name, sizeof(name)), 100 * c->gmae, 100 * c->mape, 100 * c->max);
	fprintf(to, "# %12s %14s %12s %10s\n", "size", "wire bytes", "time (us)", "busbw");
	for (double size = sizes->min; size <= sizes->max * (1 + 1e-9); size *= sizes->factor) {
		double wire = size * curve_wire_factor(c->kind, c->n_ranks), ns;
		struct fitted_beyond beyond;

		if (fitted_ns(f, c->kind, c->n_ranks, c->n_nodes, size, &ns, &beyond) != 0)
			continue;
		fprintf(to, "  %12.0f %14.0f %12.2f %10.2f", size, wire, ns / 1e3, wire / ns);
		print_beyond(&beyond, to);
	}
}

/* Those of @n_ranks: @n_nodes, or where that is 0 as large ones as @c's. */
static uint32_t nodes_of(const struct curve *c, uint32_t n_ranks, uint32_t n_nodes)
{
	uint32_t on_each = c->n_ranks / c->n_nodes;

	return n_nodes ? n_nodes : (n_ranks + on_each - 1) / on_each;
}

void eval_print(const struct fitted *f, const struct eval_sizes *sizes, uint32_t n_ranks,
		uint32_t n_nodes, FILE *to)
{
	for (size_t i = 0; i < f->n; i++) {
		struct curve c = f->curves[i];
		bool is_first = true;

		/* one table for all curves of a kind and, where they are given, ranks */
		if (n_ranks) {
			c.n_nodes = nodes_of(&c, n_ranks, n_nodes);
			c.n_ranks = n_ranks;
		}
		for (size_t j = 0; j < i; j++)
			is_first &= f->curves[j].kind != c.kind ||
				    (!n_ranks && (f->curves[j].n_ranks != c.n_ranks ||
						  f->curves[j].n_nodes != c.n_nodes));
		if (is_first)
			print_table(f, &c, sizes, to);
	}
}

bool eval_skew(const struct fitted *f, const struct skew *skew, uint32_t n_ranks, uint32_t n_nodes,
	       FILE *to)
{
	double factor = curve_wire_factor(COLL_ALLTOALL, n_ranks), ns, even_ns;
	const struct curve *c = f->curves;
	struct fitted_beyond beyond;
	char bytes[32];

	while (c < f->curves + f->n && c->kind != COLL_ALLTOALL)
		c++;
	if (c == f->curves + f->n)
		return false;
	n_nodes = nodes_of(c, n_ranks, n_nodes);
	fitted_ns(f, COLL_ALLTOALL, n_ranks, n_nodes, skew->even / factor, &even_ns, &beyond);
	fitted_ns(f, COLL_ALLTOALL, n_ranks, n_nodes, (double)skew->bytes / factor, &ns, &beyond);
	fprintf(to, "AllToAll, %u ranks on %u node%s\n", n_ranks, n_nodes, n_nodes == 1 ? "" : "s");
	fprintf(to, "  busiest  rank %u %s %s, %.3f times the mean\n", skew->rank,
		skew->is_receive ? "receives" : "sends",
		units_print_bytes(skew->bytes, bytes, sizeof(bytes)),
		skew->even > 0 ? (double)skew->bytes / skew->even : 1);
	fprintf(to, "  time     %.2f us; if all sent alike %.2f us", ns / 1e3, even_ns / 1e3);
	print_beyond(&beyond, to);
	return true;
}

bool eval_check(const struct fitted *f, FILE *to)
{
	bool is_sound = true;
	char name[128];

	for (size_t i = 0; i < f->n; i++) {
		const struct curve *c = &f->curves[i];
		struct check check = check_times(curve_ns, c);
		double at_m1, at_m2;

		fprintf(to, "%s: %s: ", fit_name(c, name, sizeof(name)), curve_form_names[c->form]);
		if (check.fall > 0)
			fprintf(to, "WRONG: time falls by %.2g %% at %.0f wire bytes",
				100 * check.fall, check.fall_bytes);
		else
			fprintf(to, "more bytes never take less time");
		if (check.jump >= CHECK_JUMP_MAX)
			fprintf(to, "; WRONG: time jumps by %.2g %% at %.0f wire bytes",
				100 * check.jump, check.jump_bytes);
		else
			fprintf(to, "; no jump above %.0f %%", 100 * CHECK_JUMP_MAX);
		is_sound &= check.fall == 0 && check.jump < CHECK_JUMP_MAX;
		if (c->form == CURVE_SIGMOID) {
			check_bridges(c, &at_m1, &at_m2);
			fprintf(to, "; bridged: %.1f %% at m1, %.1f %% at m2", 100 * at_m1,
				100 * at_m2);
		}
		fputc('\n', to);
	}
	return is_sound;
}
