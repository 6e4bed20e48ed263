/* See perf-report.h. */
#include "nbox/perf/perf-report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/ask/ask.h"

/* Ops of equal size, one after the other, of the rank that is looked at. */
struct perf_size {
	const struct record_op *row; /* the first of them */
	uint64_t n;
	double model_ns, injected_ns; /* sums */
};

void perf_print_head(const struct config *c, const char *network, FILE *to)
{
	char model[1024], world[64];

	fprintf(to, "# nbox: %s, %zu real; model %s\n",
		topology_print(&c->topology, world, sizeof(world)), c->n_real,
		config_model(c, model, sizeof(model)));
	if (network[0])
		fprintf(to, "# network: %s\n", network);
	fflush(to);
}

/* The record has bytes by NCCL's arguments; nccl-tests has those of the larger buffer. */
static uint64_t table_bytes(const struct record_op *r)
{
	return r->kind == COLL_SENDRECV ? r->bytes / 2 /* a record of calls has both ways */
					: ask_size(r->kind, r->bytes, r->of->n_ranks);
}

/* Of one rank's part, where each rank has one, as nccl-tests has it. */
static uint64_t table_count(const struct record_op *r, enum coll_kind kind)
{
	uint32_t element = (uint32_t)coll_dtype_bytes(r->dtype);

	element = element ? element : 1;
	return ask_bytes(kind, table_bytes(r), element, r->of->n_ranks) / element;
}

static void print_columns(FILE *to)
{
	fprintf(to, "#\n# time, algbw, busbw: of the virtual cluster (model and what-ifs); "
		    "injected: what of time is what-ifs'; "
		    "this machine: what the op took here\n#\n");
	fprintf(to, "# %10s %13s %9s %7s %7s %10s %7s %7s %6s %10s %12s\n", "size", "count", "type",
		"redop", "root", "time", "algbw", "busbw", "#wrong", "injected", "this machine");
	fprintf(to, "# %10s %13s %9s %7s %7s %10s %7s %7s %6s %10s %12s\n", "(B)", "(elements)", "",
		"", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)");
}

/* Bandwidths are those of all of the time: of what the job would see. Return: the bus bandwidth. */
static double print_size(const struct perf_size *s, enum coll_kind kind, double here_ns, FILE *to)
{
	const struct record_op *r = s->row;
	double ns = (s->model_ns + s->injected_ns) / (double)s->n,
	       algbw = ns > 0 ? (double)table_bytes(r) / ns : 0;
	double busbw = algbw * coll_busbw_factor(kind, r->of->n_ranks);

	fprintf(to, "%12llu %13llu %9s %7s %7s %10.2f %7.2f %7.2f %6s %10.2f %12.2f\n",
		(unsigned long long)table_bytes(r), (unsigned long long)table_count(r, kind),
		coll_dtype_name(r->dtype), coll_reduces(r->kind) ? "sum" : "none",
		r->kind == COLL_BROADCAST || r->kind == COLL_REDUCE ? "0" : "-1", ns / 1e3, algbw,
		busbw, "N/A", s->injected_ns / (double)s->n / 1e3, here_ns / 1e3);
	return busbw;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static double median(double *values, uint64_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

int perf_print_table(const struct record *rec, const struct report *rep, enum coll_kind kind,
		     FILE *to)
{
	CLEANUP(freep)
	double *here = calloc(rec->n_ops + 1, sizeof(*here)); /* of the ops of one size */
	struct perf_size s = {0};
	double sum = 0;
	uint64_t n = 0;

	if (!here)
		return -ENOMEM;
	print_columns(to);
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *r = &rec->ops[i];

		if (r->world_rank != rep->rank)
			continue;
		if (s.n && table_bytes(r) != table_bytes(s.row)) {
			sum += print_size(&s, kind, median(here, s.n), to);
			s.n = 0;
			n++;
		}
		if (s.n == 0)
			s = (struct perf_size){.row = r};
		here[s.n++] =
			r->release_ns > r->arrive_ns ? (double)(r->release_ns - r->arrive_ns) : 0;
		s.model_ns += r->model_ns;
		s.injected_ns += r->injected_ns;
	}
	if (s.n) {
		sum += print_size(&s, kind, median(here, s.n), to);
		n++;
	}
	fprintf(to, "# Avg bus bandwidth    : %g\n#\n", n ? sum / (double)n : 0);
	if (kind == COLL_SENDRECV)
		fprintf(to,
			"# rank %u's send and receive; without --live: until all ranks are through\n",
			rep->rank);
	return 0;
}

void perf_print_tail(const struct report *rep, const char *dir, FILE *to)
{
	char p50[32], max[32];

	if (rep->lost[0])
		fprintf(to, "# NOT WHOLE: %s\n", rep->lost);
	fprintf(to,
		"# gates opened late by p50 %s, max %s: so much of the last column is this "
		"machine's alone\n",
		units_print_time(rep->lateness_ns.p50, p50, sizeof(p50)),
		units_print_time(rep->lateness_ns.max, max, sizeof(max)));
	for (uint32_t i = 0; i < rep->n_warnings; i++)
		fprintf(to, "# warning: %s\n", rep->warnings[i]);
	fprintf(to, "# results in %s\n", dir);
}
