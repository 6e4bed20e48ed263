/* See metrics.h. */
#include "nbox/export/metrics.h"

#include "base/metric.h"
#include "engine/totals.h"

/* Of the lowest real rank; nothing where no steps were found. */
static void steps(const struct report *rep, FILE *to)
{
	static const char name[] = "nbox_step_seconds";
	const struct report_stat *s = &rep->step_ns;
	const struct {
		const char *quantile;
		double ns;
	} quantiles[] = {{"0", s->min},    {"0.25", s->p25}, {"0.5", s->p50}, {"0.75", s->p75},
			 {"0.95", s->p95}, {"0.99", s->p99}, {"1", s->max}};

	if (!s->n)
		return;
	metric_head(to, name, "summary", "Virtual time of a step of the job, without warm-up.");
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		fprintf(to, "%s{quantile=\"%s\"} %.15g\n", name, quantiles[i].quantile,
			quantiles[i].ns / 1e9);
	fprintf(to, "%s_sum %.15g\n%s_count %llu\n", name, s->mean * (double)s->n / 1e9, name,
		(unsigned long long)s->n);
	metric_one(to, "nbox_step_modelled_seconds", "gauge",
		   "What the model says of the ops of a step, the mean.", rep->modelled_ns / 1e9);
	metric_one(
		to, "nbox_step_exposed_seconds", "gauge",
		"Virtual time of a step in which computation waited for communication, the mean.",
		rep->exposed_ns / 1e9);
	metric_one(to, "nbox_step_injected_seconds", "gauge",
		   "How much longer a step takes than without what-ifs, the mean.",
		   rep->injected_ns / 1e9);
}

void metrics_print(const struct record *rec, const struct report *rep, FILE *to)
{
	const struct record_header *h = &rep->header;
	struct totals t = {.n_debts = rec->end.n_debts, .debt_ns = (double)rec->end.debt_ns};

	for (uint64_t i = 0; i < rec->n_ops; i++)
		totals_op(&t, &rec->ops[i]);
	for (uint64_t i = 0; i < rec->n_points; i++)
		totals_point(&t, &rec->points[i]);
	totals_print_cluster(h->model, h->world_size, h->n_real, h->n_nodes, to);
	steps(rep, to);
	totals_print(&t, to);
	metric_one(to, "nbox_ops_lost", "gauge", "Ops that could not be written to the record.",
		   (double)rec->end.n_lost);
}
