/* See totals.h. */
#include "engine/totals.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/metric.h"

void totals_op(struct totals *t, const struct record_op *op)
{
	struct totals_kind *k = &t->kinds[op->kind];
	double late = (double)(int64_t)(op->release_ns - op->due_ns), most = 1e3;

	k->n++;
	k->bytes += op->bytes;
	k->modelled_ns += op->model_ns;
	k->injected_ns += op->injected_ns;
	k->shared_ns += op->shared_ns;
	k->queued_ns += op->queued_ns;
	t->exposed_ns += (double)op->exposed_ns;
	if (op->flags & RECORD_NO_PROCESS)
		return;
	t->n_gates++;
	t->late_ns += late;
	for (int i = 0; i < TOTALS_BUCKETS; i++, most *= 10)
		t->n_late[i] += late <= most;
}

void totals_point(struct totals *t, const struct record_point *point)
{
	t->exposed_ns += (double)point->exposed_ns;
}

void totals_debt(struct totals *t, double ns)
{
	t->n_debts++;
	t->debt_ns += ns;
}

/* --- as metrics -------------------------------------------------------------------- */

void totals_print_cluster(const char *model, uint32_t world_size, uint32_t n_real, uint32_t n_nodes,
			  FILE *to)
{
	metric_head(to, "nbox_info", "gauge", "What times come from.");
	fputs("nbox_info{version=", to);
	metric_label(to, NBOX_VERSION);
	fputs(",model=", to);
	metric_label(to, model);
	fputs("} 1\n", to);
	metric_one(to, "nbox_ranks", "gauge", "Ranks of the virtual cluster.", world_size);
	metric_one(to, "nbox_real_ranks", "gauge", "Of them, those with a process.", n_real);
	metric_one(to, "nbox_nodes", "gauge", "Nodes of the virtual cluster.", n_nodes);
}

#define KIND(field) offsetof(struct totals_kind, field)

static const struct {
	const char *name, *help;
	size_t at;
	bool is_count;
} of_kinds[] = {
	{"nbox_ops_total", "Ops of real ranks that are over.", KIND(n), true},
	{"nbox_op_bytes_total", "Bytes of these ops, as the job called them.", KIND(bytes), true},
	{"nbox_op_modelled_seconds_total", "What the model says that they take.", KIND(modelled_ns),
	 false},
	{"nbox_op_injected_seconds_total", "What what-ifs added to that.", KIND(injected_ns),
	 false},
	{"nbox_op_shared_seconds_total",
	 "Virtual time that they waited for links that other ops used.", KIND(shared_ns), false},
	{"nbox_op_queued_seconds_total",
	 "Virtual time that they waited for ops of their communicator before them.",
	 KIND(queued_ns), false},
};

static void print_kinds(const struct totals *t, size_t i, FILE *to)
{
	metric_head(to, of_kinds[i].name, "counter", of_kinds[i].help);
	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		const char *at = (const char *)&t->kinds[k] + of_kinds[i].at;

		if (!t->kinds[k].n)
			continue;
		fprintf(to, "%s{op=\"%s\"} ", of_kinds[i].name, coll_kind_name(k));
		if (of_kinds[i].is_count)
			fprintf(to, "%" PRIu64 "\n", *(const uint64_t *)(const void *)at);
		else
			fprintf(to, "%.15g\n", *(const double *)(const void *)at / 1e9);
	}
}

void totals_print(const struct totals *t, FILE *to)
{
	static const char late[] = "nbox_gate_lateness_seconds";
	double most = 1e-6;

	for (size_t i = 0; i < sizeof(of_kinds) / sizeof(of_kinds[0]); i++)
		print_kinds(t, i, to);
	metric_one(to, "nbox_exposed_seconds_total", "counter",
		   "Virtual time that computation of real ranks waited for communication.",
		   t->exposed_ns / 1e9);
	metric_head(to, late, "histogram",
		    "How much later than due this machine let real ranks go on.");
	for (int i = 0; i < TOTALS_BUCKETS; i++, most *= 10)
		fprintf(to, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", late, most, t->n_late[i]);
	fprintf(to, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.15g\n%s_count %" PRIu64 "\n",
		late, t->n_gates, late, t->late_ns / 1e9, late, t->n_gates);
	metric_one(to, "nbox_debts_total", "counter",
		   "Ends of ops that moved when the rank had gone on already.", (double)t->n_debts);
	metric_one(to, "nbox_debt_seconds_total", "counter", "By how much they moved in all.",
		   t->debt_ns / 1e9);
}
