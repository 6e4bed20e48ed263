/* See write.h. */
#include "nbox/trace/write.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/export/json-text.h"
#include "schedule/coll.h"

#define RANKS_SHOWN 30 /* of a group, as PyTorch does; all are in the header */

struct writer {
	const struct trace *t;
	FILE *to;
	double zero_us; /* what times count from, since the trace's origin */
	bool *launches; /* owned; by op */
};

static void print_ranks(const struct trace_comm *c, uint32_t most, FILE *to)
{
	putc('[', to);
	for (uint32_t i = 0; i < c->n && i < most; i++)
		fprintf(to, "%s%u", i ? ", " : "", c->members[i]);
	fputs(c->n > most ? ", ...]" : "]", to);
}

/* Of one name there may be several, with other members. */
static void print_comm(const struct trace *t, uint32_t comm, FILE *to)
{
	char *name = NULL;
	bool is_alone = true;

	for (uint32_t i = 0; i < comm && is_alone; i++)
		is_alone = t->comms[i].name != t->comms[comm].name;
	if (is_alone || asprintf(&name, "%s#%u", trace_name(t, t->comms[comm].name), comm) < 0)
		name = NULL;
	json_text(name ? name : trace_name(t, t->comms[comm].name), to);
	free(name);
}

static void print_header(const struct writer *w)
{
	const struct trace *t = w->t;

	fprintf(w->to,
		"{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\"backend\": \"nccl\", "
		"\"world_size\": %u, \"pg_config\": [",
		t->world);
	for (uint32_t i = 0; i < t->n_comms; i++) {
		fprintf(w->to, "%s{\"pg_name\": ", i ? ", " : "");
		print_comm(t, i, w->to);
		if (t->comms[i].members) {
			fputs(", \"ranks\": ", w->to);
			print_ranks(&t->comms[i], UINT32_MAX, w->to);
		}
		putc('}', w->to);
	}
	fprintf(w->to,
		"]},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRIu64
		",\n\"traceEvents\": [",
		t->origin_ns + (uint64_t)(int64_t)(w->zero_us * 1e3));
}

static void print_message(const struct writer *w, const struct trace_op *op)
{
	uint64_t in = op->bytes, out = op->bytes,
		 n = op->comm == TRACE_NONE ? 1 : w->t->comms[op->comm].n;

	if (op->coll == COLL_ALLTOALL)
		in = out = op->bytes * n;
	fputs(", \"Collective name\": ", w->to);
	if (op->kind == TRACE_COLLECTIVE)
		fprintf(w->to, "\"%s\"", op->coll == TRACE_NONE ? "" : coll_kind_name(op->coll));
	else
		fprintf(w->to, "\"%s\", \"%s\": %u", op->kind == TRACE_SEND ? "send" : "recv",
			op->kind == TRACE_SEND ? "Dst Rank" : "Src Rank", op->peer);
	if (op->kind == TRACE_COLLECTIVE && op->peer != TRACE_NONE)
		fprintf(w->to, ", \"Root\": %u", op->peer);
	fprintf(w->to,
		", \"dtype\": \"Byte\", \"In msg nelems\": %" PRIu64
		", \"Out msg nelems\": %" PRIu64,
		in, out);
	if (op->seq != UINT64_MAX)
		fprintf(w->to, ", \"Seq\": %" PRIu64, op->seq);
	if (op->comm == TRACE_NONE)
		return;
	fprintf(w->to, ", \"Group size\": %" PRIu64 ", \"Process Group Name\": ", n);
	print_comm(w->t, op->comm, w->to);
	if (w->t->comms[op->comm].members) {
		fputs(", \"Process Group Ranks\": \"", w->to);
		print_ranks(&w->t->comms[op->comm], RANKS_SHOWN, w->to);
		putc('"', w->to);
	}
}

/* NULL: dPRO's, by its name. */
static const char *category(const struct trace *t, const struct trace_op *op)
{
	static const char *const dpro[] = {"FW.", "BW.", "OUTPUT.", "UPDATE", "I/O", "Comm."};
	static const char *const names[TRACE_KINDS] = {"cpu_op", "cuda_runtime", "cuda_runtime",
						       "kernel", "gpu_memcpy",   "kernel",
						       "kernel", "kernel"};

	for (size_t i = 0; i < ARRAY_SIZE(dpro) && op->comm == TRACE_NONE; i++)
		if (strncmp(trace_name(t, op->name), dpro[i], strlen(dpro[i])) == 0)
			return NULL;
	return names[op->kind];
}

static void print_op(const struct writer *w, uint32_t number, bool is_first)
{
	const struct trace *t = w->t;
	const struct trace_op *op = &t->ops[number];
	const struct trace_rank *rank = &t->ranks[op->rank];
	const char *cat = category(t, op);
	bool is_message =
		op->kind == TRACE_COLLECTIVE || op->kind == TRACE_SEND || op->kind == TRACE_RECV;
	char *pid = NULL;

	fprintf(w->to, "%s\n{\"ph\": \"X\", \"name\": ", is_first ? "" : ",");
	json_text(trace_name(t, op->name), w->to);
	if (asprintf(&pid, "%s.rank%u", trace_name(t, t->hosts[rank->host]), rank->rank) < 0)
		pid = NULL;
	fputs(", \"pid\": ", w->to);
	json_text(pid ? pid : "", w->to);
	free(pid);
	fprintf(w->to,
		", \"cat\": \"%s\", \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"op\": %u",
		cat ? cat : "dpro", op->stream, op->start_ns / 1e3 - w->zero_us,
		(op->end_ns - op->start_ns) / 1e3, number);
	if (op->step != TRACE_NONE)
		fprintf(w->to, ", \"step\": %u", op->step);
	if (op->launched_by != TRACE_NONE)
		fprintf(w->to, ", \"correlation\": %u", op->launched_by + 1);
	else if (w->launches[number])
		fprintf(w->to, ", \"correlation\": %u", number + 1);
	if (op->n_waits) {
		fputs(", \"waits\": [", w->to);
		for (uint32_t i = 0; i < op->n_waits; i++)
			fprintf(w->to, "%s%u", i ? ", " : "", t->waits[op->first_wait + i].on);
		putc(']', w->to);
	}
	if (cat && is_message)
		print_message(w, op);
	else if (op->bytes)
		fprintf(w->to, ", \"bytes\": %" PRIu64, op->bytes);
	if (!cat && op->peer != TRACE_NONE)
		fprintf(w->to, ", \"peer\": %u", op->peer);
	fputs("}}", w->to);
}

int trace_print(const struct trace *t, FILE *to)
{
	CLEANUP(freep) bool *launches = calloc((size_t)t->n_ops + 1, sizeof(*launches));
	struct writer w = {.t = t, .to = to, .launches = launches};
	double first = INFINITY;

	if (!launches)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ops; i++) {
		first = fmin(first, t->ops[i].start_ns);
		if (t->ops[i].launched_by != TRACE_NONE)
			launches[t->ops[i].launched_by] = true;
	}
	w.zero_us = t->n_ops ? floor(first / 1e3) : 0;
	print_header(&w);
	for (uint32_t i = 0; i < t->n_ops; i++)
		print_op(&w, i, i == 0);
	fputs("\n]\n}\n", to);
	return 0;
}
