/* See perf-report.h. */
#include "cli/perf-report.h"

#include <stdbool.h>
#include <string.h>

#include "base/units.h"

/* Ops of equal size, one after the other, of the rank that is looked at. */
struct perf_size {
	uint64_t bytes; /* as in the table: nccl-tests' size */
	uint64_t n;
	double ns;      /* sum of what the model says of the ops */
	double injected_ns; /* and of what what-ifs added to that */
	uint32_t n_ranks;
};

void perf_print_head(const struct config *c, const char *network, FILE *to)
{
	char model[1024];

	fprintf(to, "# nbox: %u ranks (%u nodes x %u), %zu real; model %s\n", c->world, c->topology.n_nodes,
		c->topology.gpus_per_node, c->n_real, config_model(c, model, sizeof(model)));
	if (network[0])
		fprintf(to, "# network: %s\n", network);
	fprintf(to, "# times: what the job saw on this machine, never less than the virtual network takes (modelled: below)\n");
	fflush(to);
}

/* The record has bytes by NCCL's arguments; nccl-tests has those of the larger buffer. */
static uint64_t table_bytes(const struct record_row *r)
{
	if (r->kind == COLL_ALLGATHER || r->kind == COLL_REDUCESCATTER || r->kind == COLL_ALLTOALL)
		return r->bytes * r->n_ranks;
	return r->kind == COLL_SENDRECV ? r->bytes / 2 : r->bytes; /* a record of calls has both ways */
}

/* nccl-tests' factor from algbw to busbw (its PERFORMANCE.md). */
static double busbw_factor(const char *op, double n)
{
	if (!strcmp(op, "allreduce"))
		return 2 * (n - 1) / n;
	return !strcmp(op, "allgather") || !strcmp(op, "reducescatter") || !strcmp(op, "alltoall") ? (n - 1) / n : 1;
}

/* Bandwidths are those of both together: of what the job would see. */
static void print_size(const struct perf_size *s, const char *op, bool has_injected, FILE *to)
{
	double us = s->n ? s->ns / (double)s->n / 1e3 : 0, injected_us = s->n ? s->injected_ns / (double)s->n / 1e3 : 0;
	double algbw = us + injected_us > 0 ? (double)s->bytes / (us + injected_us) * 1e-3 : 0;

	if (s->n == 0)
		return;
	fprintf(to, "# %10llu %11.2f ", (unsigned long long)s->bytes, us);
	if (has_injected)
		fprintf(to, "%11.2f ", injected_us);
	fprintf(to, "%8.2f %7.2f\n", algbw, algbw * busbw_factor(op, s->n_ranks));
}

static void print_modelled(const struct record *rec, const struct report *rep, const char *op, FILE *to)
{
	bool has_injected = rep->total_injected_ns != 0;
	struct perf_size s = {0};

	fprintf(to, "# %10s %11s %s%8s %7s\n", "size", "modelled", has_injected ? "   injected " : "", "algbw", "busbw");
	fprintf(to, "# %10s %11s %s%8s %7s\n", "(B)", "(us)", has_injected ? "       (us) " : "", "(GB/s)", "(GB/s)");
	for (uint64_t i = 0; i < rec->n_rows; i++) {
		const struct record_row *r = &rec->rows[i];
		uint64_t bytes = table_bytes(r);

		if (r->world_rank != rep->rank)
			continue;
		if (s.n == 0 || bytes != s.bytes) {
			print_size(&s, op, has_injected, to);
			s = (struct perf_size){.bytes = bytes, .n_ranks = r->n_ranks};
		}
		s.n++;
		s.ns += r->model_ns;
		s.injected_ns += r->injected_ns;
	}
	print_size(&s, op, has_injected, to);
}

void perf_print_tail(const struct record *rec, const struct report *rep, const char *op, const char *dir, FILE *to)
{
	char p50[32], max[32];

	print_modelled(rec, rep, op, to);
	fprintf(to, "#\n# gates opened late by p50 %s, max %s: the part of the times that is this machine's; modelled is the "
		"virtual network's\n",
		units_print_time(rep->lateness_ns.p50, p50, sizeof(p50)),
		units_print_time(rep->lateness_ns.max, max, sizeof(max)));
	for (uint32_t i = 0; i < rep->n_warnings; i++)
		fprintf(to, "# warning: %s\n", rep->warnings[i]);
	fprintf(to, "# results in %s\n", dir);
}
