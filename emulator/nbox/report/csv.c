/* See csv.h. */
#include "nbox/report/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/timing.h"
#include "members/members.h"
#include "nbox/report/steps.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"

enum shape {
	WORD,   /* a uint32_t */
	OF,     /* a uint32_t of the op's communicator */
	COUNT,  /* a uint64_t */
	NUMBER, /* a double */
	KIND,
	DTYPE,
	ALGO,
	SCHEDULE,
	HOW,
	STEP,
	MEMBERS,
	SURE,
	CALLS,
	POINT,
	OP_DEPS,
	POINT_DEPS
};

/* Programs find columns by their place, too: new ones come last. */
struct column {
	const char *name;
	enum shape shape;
	size_t at;
	const char *unit, *meaning;
};

#define ROW(field) offsetof(struct record_op, field)
#define COMM(field) offsetof(struct record_comm, field)

static const struct column op_columns[] = {
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
	{"n_ranks", OF, COMM(n_ranks), "", "of the communicator"},
	{"n_real_ranks", OF, COMM(n_real), "", "of them, those with a process"},
	{"bytes", COUNT, ROW(bytes), "B",
	 "count times size of an element, as the job called it; SendRecv: sent and received"},
	{"arrive_ns", COUNT, ROW(arrive_ns), "ns",
	 "when this rank's stream reached the op; this and the next four: nboxd's wall clock"},
	{"start_ns", COUNT, ROW(start_ns), "ns",
	 "this rank's end less what the op takes, never before arrive_ns"},
	{"due_ns", COUNT, ROW(due_ns), "ns", "when this rank's gate was to open"},
	{"release_ns", COUNT, ROW(release_ns), "ns", "when it did; less due_ns it is the lateness"},
	{"local_done_ns", COUNT, ROW(local_done_ns), "ns",
	 "when the work among the real ranks was over; 0: not known"},
	{"model_ns", NUMBER, ROW(model_ns), "ns", "what the model says that the op takes"},
	{"injected_ns", NUMBER, ROW(injected_ns), "ns", "what what-ifs added to that"},
	{"messages", COUNT, ROW(n_messages), "",
	 "that crossed the link between this rank and nboxd"},
	{"flags", WORD, ROW(flags), "",
	 "sum of 2 replay of a captured op, 4 faster than bytes over bandwidth, 8 timed by the "
	 "model as a whole, 16 the job's events are not seen, 64 of a rank without a process, 128 a "
	 "resharding step that xmesh has planned, 256 by what nbox assumed, 512 one that it left alone, "
	 "2048 an all-to-all by the matrix of --alltoall, 4096 one that does not match it"},
	{"how", HOW, 0, "",
	 "how the time was found: model (a formula for the op), symmetry (of its messages), "
	 "simulated"},
	{"schedule", SCHEDULE, 0, "",
	 "algorithm of the messages that cross the link under --exchange messages and payload"},
	{"step", STEP, 0, "",
	 "of the job, from 1, as found from this rank's ops; 0: before, between or after steps"},
	{"virtual_arrive_ns", COUNT, ROW(virtual_arrive_ns), "ns",
	 "when this rank arrives in the virtual cluster"},
	{"virtual_end_ns", COUNT, ROW(virtual_end_ns), "ns", "and when the op is over there"},
	{"plain_arrive_ns", COUNT, ROW(plain_arrive_ns), "ns",
	 "the same two in a virtual cluster without what-ifs"},
	{"plain_end_ns", COUNT, ROW(plain_end_ns), "ns", ""},
	{"exposed_ns", COUNT, ROW(exposed_ns), "ns",
	 "what its own stream, where that computes too, waited for the op before it"},
	{"call_ns", COUNT, ROW(call_ns), "ns",
	 "when the job called it, by the wall clock; 0: not known"},
	{"count", COUNT, ROW(count), "", "elements, as the job called it"},
	{"redop", WORD, ROW(redop), "", "reduction, NCCL's number"},
	{"root", WORD, ROW(root), "", "rank"},
	{"stream", WORD, ROW(stream), "", "of the worker"},
	{"name", COUNT, ROW(name), "", "of the op among the rank's ops and points; 0: none"},
	{"host", COUNT, ROW(host), "", "name of the last host point before the call; 0: none"},
	{"deps", OP_DEPS, 0, "",
	 "names of what it waits for, separated by spaces; * on its own stream"},
	{"calls", CALLS, 0, "",
	 "SendRecv: s or r, peer, bytes, such as s3:4096, separated by spaces"},
	{"members", MEMBERS, 0, "", "how the communicator's members are known"},
	{"sure", SURE, 0, "", "how surely"},
	{"work_ns", COUNT, ROW(work_ns), "ns",
	 "when its stream got its first work since the op or point before; 0: none seen"},
	{"order", COUNT, ROW(order), "",
	 "of its arrival among the arrivals and points of all ranks, as nboxd took them"},
	{"done_order", COUNT, ROW(done_order), "",
	 "how many of them had come when nboxd learnt when the gate had opened"},
	{"shared_ns", NUMBER, ROW(shared_ns), "ns",
	 "how long it waited for links that other ops used, in the virtual cluster"},
	{"queued_ns", NUMBER, ROW(queued_ns), "ns",
	 "how long this rank waited there for ops of the same communicator before it"},
	{"waited_ns", NUMBER, ROW(waited_ns), "ns",
	 "how long it then waited there for the last rank that it needs"},
	{"waited_for", WORD, ROW(waited_for), "",
	 "that rank, in the world, where waited_ns is not 0"},
};

#undef ROW
#define ROW(field) offsetof(struct record_point, field)

static const struct column point_columns[] = {
	{"name", COUNT, ROW(name), "", "of the point among the rank's ops and points"},
	{"world_rank", WORD, ROW(world_rank), "", "in the world"},
	{"kind", POINT, 0, "", "stream: a place that the device reached; host: a call returned"},
	{"stream", WORD, ROW(stream), "", "of the worker; host: 0"},
	{"time_ns", COUNT, ROW(time_ns), "ns", "when it was reached, by nboxd's wall clock"},
	{"call_ns", COUNT, ROW(call_ns), "ns", "when the job called for it; 0: in a graph"},
	{"virtual_ns", COUNT, ROW(virtual_ns), "ns", "when it is reached in the virtual cluster"},
	{"plain_ns", COUNT, ROW(plain_ns), "ns", "the same without what-ifs"},
	{"exposed_ns", COUNT, ROW(exposed_ns), "ns",
	 "what the rank's computation waited for communication here"},
	{"host_bound", WORD, ROW(is_host_bound), "", "1: the host was the bound, not the device"},
	{"host", COUNT, ROW(host), "", "name of the last host point before the call; 0: none"},
	{"deps", POINT_DEPS, 0, "",
	 "names of what it waits for, separated by spaces; * on its own stream"},
	{"work_ns", COUNT, ROW(work_ns), "ns", "as for ops"},
	{"order", COUNT, ROW(order), "", "among the points and arrivals of all ranks"},
};

/* "tree" of "tree:bw=1GB/s + add:..."; nothing that is no name, whoever wrote the record */
static void print_model(const char *model, FILE *to)
{
	static const char of_names[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";

	fprintf(to, "%.*s", (int)strspn(model, of_names), model);
}

static void print_deps(const struct record_dep *deps, uint32_t n, FILE *to)
{
	for (uint32_t i = 0; i < n; i++)
		fprintf(to, "%s%llu%s", i ? " " : "", (unsigned long long)deps[i].name,
			deps[i].is_same_stream ? "*" : "");
}

static void print_calls(const struct record_op *op, FILE *to)
{
	for (uint32_t i = 0; i < op->n_calls; i++)
		fprintf(to, "%s%c%u:%llu", i ? " " : "", op->calls[i].is_send ? 's' : 'r',
			op->calls[i].peer, (unsigned long long)op->calls[i].bytes);
}

static void print_point_value(const struct column *c, const struct record_point *p, FILE *to)
{
	if (c->shape == POINT)
		fputs(p->kind == RECORD_POINT_HOST ? "host" : "stream", to);
	else
		print_deps(p->deps, p->n_deps, to);
}

/* A value that is no plain number. */
static void print_op_value(const struct column *c, const struct record_header *h,
			   const struct record_op *op, uint64_t step, FILE *to)
{
	if (c->shape == KIND)
		fputs(coll_kind_name(op->kind), to);
	else if (c->shape == DTYPE)
		fputs(coll_dtype_name(op->dtype), to);
	else if (c->shape == ALGO && op->flags & RECORD_OF_MODEL)
		print_model(h->model, to);
	else if (c->shape == ALGO || c->shape == SCHEDULE)
		fputs(sched_algo_name(op->algo), to);
	else if (c->shape == HOW)
		fputs(solve_how_name(op->how), to);
	else if (c->shape == STEP)
		fprintf(to, "%llu", (unsigned long long)step);
	else if (c->shape == MEMBERS)
		fputs(members_source_name(op->of->source), to);
	else if (c->shape == SURE)
		fputs(members_sure_name(op->of->sure), to);
	else if (c->shape == CALLS)
		print_calls(op, to);
	else
		print_deps(op->deps, op->n_deps, to);
}

/* Return: false: it is none. */
static bool print_number(const struct column *c, const void *row, FILE *to)
{
	const char *at = (const char *)row + c->at;

	if (c->shape == WORD || c->shape == OF)
		fprintf(to, "%u", *(const uint32_t *)(const void *)at);
	else if (c->shape == COUNT)
		fprintf(to, "%llu", *(const unsigned long long *)(const void *)at);
	else if (c->shape == NUMBER)
		fprintf(to, "%.3f", *(const double *)(const void *)at);
	return c->shape <= NUMBER;
}

static void help(const struct column *columns, size_t n, FILE *to)
{
	for (size_t i = 0; i < n; i++)
		fprintf(to, "  %-17s %-3s %s\n", columns[i].name, columns[i].unit,
			columns[i].meaning);
}

void csv_help(FILE *to)
{
	fputs("The columns of --csv, a row an op and real rank:\n", to);
	help(op_columns, ARRAY_SIZE(op_columns), to);
	fputs("\nThe columns of --points, a row a point of a real rank's time:\n", to);
	help(point_columns, ARRAY_SIZE(point_columns), to);
}

static void print_names(const struct column *columns, size_t n, FILE *to)
{
	for (size_t c = 0; c < n; c++)
		fprintf(to, "%s%s", columns[c].name, c + 1 < n ? "," : "\n");
}

/* --- the steps of each rank ------------------------------------------------------------------ */

static int by_rank(const void *pa, const void *pb)
{
	return steps_order(*(const struct record_op *const *)pa,
			   *(const struct record_op *const *)pb);
}

/* Of the @n rows at @sorted, all of one rank; @copies has room for them. */
static int number_rank(const struct record *rec, const struct record_op **sorted, uint64_t n,
		       struct record_op *copies, uint64_t *step_of)
{
	CLEANUP(steps_deinit) struct steps s = {0};
	int r;

	for (uint64_t i = 0; i < n; i++)
		copies[i] = *sorted[i];
	r = steps_find(rec, copies, n, &s);
	for (uint64_t k = 0; r == 0 && k < s.n; k++)
		for (uint64_t i = s.list[k].first; i < s.list[k].end; i++)
			step_of[sorted[i] - rec->ops] = k + 1;
	return r;
}

static int number_steps(const struct record *rec, uint64_t *step_of)
{
	CLEANUP(freep) const struct record_op **sorted = calloc(rec->n_ops + 1, sizeof(*sorted));
	CLEANUP(freep) struct record_op *copies = calloc(rec->n_ops + 1, sizeof(*copies));
	int r = 0;

	if (!sorted || !copies)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		sorted[i] = &rec->ops[i];
	qsort(sorted, rec->n_ops, sizeof(*sorted), by_rank);
	for (uint64_t first = 0, end; r == 0 && first < rec->n_ops; first = end) {
		for (end = first;
		     end < rec->n_ops && sorted[end]->world_rank == sorted[first]->world_rank;)
			end++;
		r = number_rank(rec, sorted + first, end - first, copies, step_of);
	}
	return r;
}

int csv_print(const struct record *rec, FILE *to)
{
	CLEANUP(freep) uint64_t *step_of = calloc(rec->n_ops + 1, sizeof(*step_of));
	int r = step_of ? number_steps(rec, step_of) : -ENOMEM;

	if (r < 0)
		return r;
	print_names(op_columns, ARRAY_SIZE(op_columns), to);
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *op = &rec->ops[i];

		for (size_t k = 0; k < ARRAY_SIZE(op_columns); k++) {
			const struct column *c = &op_columns[k];

			if (!print_number(c, c->shape == OF ? (const void *)op->of : op, to))
				print_op_value(c, &rec->header, op, step_of[i], to);
			putc(k + 1 < ARRAY_SIZE(op_columns) ? ',' : '\n', to);
		}
	}
	return 0;
}

void csv_print_points(const struct record *rec, FILE *to)
{
	print_names(point_columns, ARRAY_SIZE(point_columns), to);
	for (uint64_t i = 0; i < rec->n_points; i++)
		for (size_t k = 0; k < ARRAY_SIZE(point_columns); k++) {
			if (!print_number(&point_columns[k], &rec->points[i], to))
				print_point_value(&point_columns[k], &rec->points[i], to);
			putc(k + 1 < ARRAY_SIZE(point_columns) ? ',' : '\n', to);
		}
}
