/* See csv.h. */
#include "nbox/report/csv.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/timing.h"
#include "nbox/report/steps.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"

struct op {
	const struct record_header *header;
	const struct record_row *row;
	uint64_t step; /* from 1; 0: of none */
};

enum shape { WORD, COUNT, NUMBER, KIND, DTYPE, ALGO, SCHEDULE, HOW, STEP };

#define ROW(field) offsetof(struct record_row, field)

/* WORD: a uint32_t; COUNT: a uint64_t; NUMBER: a double. Programs find columns by their place, too:
 * new ones come last. */
static const struct column {
	const char *name;
	enum shape shape;
	size_t at;
	const char *unit, *meaning;
} columns[] = {
	{"number", COUNT, ROW(number), "", "of the op in the run; the same for all its ranks"},
	{"seq", COUNT, ROW(seq), "", "of the op in its communicator; SendRecv: of the rank's own"},
	{"comm", WORD, ROW(comm), "", "number of the communicator in the run"},
	{"rank", WORD, ROW(rank), "", "in the communicator"},
	{"world_rank", WORD, ROW(world_rank), "", "in the world"},
	{"op", KIND, 0, "", "kind of collective; SendRecv: a group of sends and receives"},
	{"dtype", DTYPE, 0, "", "type of the elements"},
	{"algo", ALGO, 0, "",
	 "what the time follows from: the algorithm whose messages were timed (ring, tree, chain, "
	 "direct), or the model that knows the whole op"},
	{"n_ranks", WORD, ROW(n_ranks), "", "of the communicator"},
	{"n_real_ranks", WORD, ROW(n_real_ranks), "", "of them, those with a process"},
	{"bytes", COUNT, ROW(bytes), "B",
	 "count times size of an element, as the job called it; SendRecv: sent and received"},
	{"arrive_ns", COUNT, ROW(arrive_ns), "ns",
	 "when this rank's stream reached the op; this and the next four: nboxd's clock"},
	{"start_ns", COUNT, ROW(start_ns), "ns", "when the last rank did, virtual ones too"},
	{"due_ns", COUNT, ROW(due_ns), "ns", "when the op is over in the virtual cluster"},
	{"release_ns", COUNT, ROW(release_ns), "ns",
	 "when this rank was let go; less due_ns it is the lateness"},
	{"local_done_ns", COUNT, ROW(local_done_ns), "ns",
	 "when the work among the real ranks was over; 0: not known"},
	{"model_ns", NUMBER, ROW(model_ns), "ns", "what the model says that the op takes"},
	{"injected_ns", NUMBER, ROW(injected_ns), "ns", "what what-ifs added to that"},
	{"messages", COUNT, ROW(n_messages), "",
	 "that crossed the link between this rank and nboxd"},
	{"flags", WORD, ROW(flags), "",
	 "sum of 1 members were guessed, 2 replay of a captured op, 4 faster than bytes over "
	 "bandwidth, 8 timed by the model as a whole; bits above: how the members are known"},
	{"how", HOW, 0, "",
	 "how the time was found: model (a formula for the op), symmetry (of its messages), "
	 "simulated"},
	{"schedule", SCHEDULE, 0, "",
	 "algorithm of the messages that cross the link under --exchange messages and payload"},
	{"step", STEP, 0, "",
	 "of the job, from 1, as found from this rank's ops; 0: before, between or after steps"},
};

/* "tree" of "tree:bw=1GB/s + add:..."; nothing that is no name, whoever wrote the record */
static void print_model(const char *model, FILE *to)
{
	static const char of_names[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";

	fprintf(to, "%.*s", (int)strspn(model, of_names), model);
}

static void print_value(const struct column *c, const struct op *op, FILE *to)
{
	static const char *const how[] = {
		[SOLVE_OP] = "model", [SOLVE_SYMMETRY] = "symmetry", [SOLVE_SIM] = "simulated"};
	const struct record_row *r = op->row;
	const char *at = (const char *)r + c->at;

	switch (c->shape) {
	case WORD:
		fprintf(to, "%u", *(const uint32_t *)(const void *)at);
		break;
	case COUNT:
		fprintf(to, "%llu", *(const unsigned long long *)(const void *)at);
		break;
	case NUMBER:
		fprintf(to, "%.3f", *(const double *)(const void *)at);
		break;
	case KIND:
		fputs(coll_kind_name(r->kind), to);
		break;
	case DTYPE:
		fputs(coll_dtype_name(r->dtype), to);
		break;
	case SCHEDULE:
		fputs(sched_algo_name(r->algo), to);
		break;
	case HOW:
		fputs(how[r->how], to);
		break;
	case STEP:
		fprintf(to, "%llu", (unsigned long long)op->step);
		break;
	case ALGO:
		if (r->flags & RECORD_OF_MODEL)
			print_model(op->header->model, to);
		else
			fputs(sched_algo_name(r->algo), to);
		break;
	}
}

void csv_help(FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		fprintf(to, "  %-14s %-3s %s\n", columns[i].name, columns[i].unit,
			columns[i].meaning);
}

/* --- the steps of each rank ------------------------------------------------------------------ */

static int by_rank(const void *pa, const void *pb)
{
	const struct record_row *a = *(const struct record_row *const *)pa,
				*b = *(const struct record_row *const *)pb;

	if (a->world_rank != b->world_rank)
		return a->world_rank < b->world_rank ? -1 : 1;
	if (a->arrive_ns != b->arrive_ns)
		return a->arrive_ns < b->arrive_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Of the @n rows at @sorted, all of one rank; @copies has room for them. */
static int number_rank(const struct record *rec, const struct record_row **sorted, uint64_t n,
		       struct record_row *copies, uint64_t *step_of)
{
	CLEANUP(steps_deinit) struct steps s = {0};
	int r;

	for (uint64_t i = 0; i < n; i++)
		copies[i] = *sorted[i];
	r = steps_find(copies, n, &s);
	for (uint64_t k = 0; r == 0 && k < s.n; k++)
		for (uint64_t i = s.list[k].first; i < s.list[k].end; i++)
			step_of[sorted[i] - rec->rows] = k + 1;
	return r;
}

static int number_steps(const struct record *rec, uint64_t *step_of)
{
	CLEANUP(freep) const struct record_row **sorted = calloc(rec->n_rows + 1, sizeof(*sorted));
	CLEANUP(freep) struct record_row *copies = calloc(rec->n_rows + 1, sizeof(*copies));
	int r = 0;

	if (!sorted || !copies)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_rows; i++)
		sorted[i] = &rec->rows[i];
	qsort(sorted, rec->n_rows, sizeof(*sorted), by_rank);
	for (uint64_t first = 0, end; r == 0 && first < rec->n_rows; first = end) {
		for (end = first;
		     end < rec->n_rows && sorted[end]->world_rank == sorted[first]->world_rank;)
			end++;
		r = number_rank(rec, sorted + first, end - first, copies, step_of);
	}
	return r;
}

int csv_print(const struct record *rec, FILE *to)
{
	CLEANUP(freep) uint64_t *step_of = calloc(rec->n_rows + 1, sizeof(*step_of));
	int r = step_of ? number_steps(rec, step_of) : -ENOMEM;

	if (r < 0)
		return r;
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		fprintf(to, "%s%s", columns[c].name, c + 1 < ARRAY_SIZE(columns) ? "," : "\n");
	for (uint64_t i = 0; i < rec->n_rows; i++) {
		const struct op op = {&rec->header, &rec->rows[i], step_of[i]};

		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			print_value(&columns[c], &op, to);
			putc(c + 1 < ARRAY_SIZE(columns) ? ',' : '\n', to);
		}
	}
	return 0;
}
